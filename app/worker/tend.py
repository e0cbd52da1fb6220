"""What time brings to the model servers: seats nobody took up, pools that work, or do not."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import structlog

from app.logging import facts_of
from app.models.health import lasting_failure, probe
from tenancy.errors import StoaError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from app.models.seats import SeatKeeper
    from tenancy.scheduler.components import ComponentDatabase
    from tenancy.scheduler.pools import PoolDatabase, PoolToProbe
    from tenancy.scheduler.seats import SeatDatabase

log = structlog.get_logger(__name__)

TEND_SECONDS = 1.0
PROBE_SECONDS = 2.0
"""How often a pool that fails is probed, by all workers together."""
LOOK_SECONDS = 5.0
"""How often one is that is open: people are told before the first of them is kept waiting."""


class SeatTender:
    """Tends the seats and probes the pools, until stopped. Any number of workers may do it.

    A server that lets itself be waited for holds up other probes, and no seat.
    """

    def __init__(
        self,
        seats: SeatDatabase,
        pools: PoolDatabase,
        components: ComponentDatabase,
        keeper: SeatKeeper,
        cooldown_seconds: float,
        probe_seconds: float = PROBE_SECONDS,
    ) -> None:
        self._seats = seats
        self._pools = pools
        self._components = components
        self._keeper = keeper
        self._cooldown_seconds = cooldown_seconds
        self._probe_seconds = probe_seconds
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to tend."""
        every = min(TEND_SECONDS, self._probe_seconds)
        self._tasks = [
            asyncio.create_task(_for_ever(self._tend, TEND_SECONDS), name="seat tender"),
            asyncio.create_task(_for_ever(self._probe_all, every), name="pool prober"),
        ]

    async def stop(self) -> None:
        """Tend no more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _tend(self) -> None:
        self._keeper.tell(await self._seats.tend(self._cooldown_seconds))

    async def _probe_all(self) -> None:
        found = await self._pools.to_probe(self._probe_seconds, LOOK_SECONDS)
        async with asyncio.TaskGroup() as probes:
            for pool in found:
                duty = self._probe if pool.is_failing else self._look_at
                probes.create_task(_reported(partial(duty, pool)))

    async def _probe(self, pool: PoolToProbe) -> None:
        if (await probe(pool.url, pool.model)).ready:
            self._keeper.tell(await self._pools.reopen(pool.pool))
            log.info("pool is back", pool=pool.pool)

    async def _look_at(self, pool: PoolToProbe) -> None:
        """Take out an open pool that cannot answer."""
        failure = await lasting_failure(pool.url, pool.model)
        if failure is None:
            return
        if await self._components.pool_checked(pool.pool, None, failure):
            log.warning("pool does not answer", pool=pool.pool, reason=failure)


async def _for_ever(duty: Callable[[], Awaitable[None]], seconds: float) -> None:
    while True:
        await _reported(duty)
        await asyncio.sleep(seconds)


async def _reported(duty: Callable[[], Awaitable[None]]) -> None:
    try:
        await duty()
    except StoaError as error:
        log.warning("tending seats failed", **facts_of(error))
    except Exception:
        log.exception("tending seats broke")
