"""What time brings to the model servers: seats that nobody took up, pools that work again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from app.logging import facts_of
from app.models.health import probe
from tenancy.errors import StoaError

if TYPE_CHECKING:
    from app.models.seats import SeatKeeper
    from tenancy.scheduler.pools import FailingPool, PoolDatabase
    from tenancy.scheduler.seats import SeatDatabase

log = structlog.get_logger(__name__)

TEND_SECONDS = 1.0
PROBE_SECONDS = 2.0
"""How often a pool that fails is probed, by all workers together."""


class SeatTender:
    """Tends the seats and probes failing pools, until stopped. Any number of workers may do it."""

    def __init__(
        self,
        seats: SeatDatabase,
        pools: PoolDatabase,
        keeper: SeatKeeper,
        cooldown_seconds: float,
    ) -> None:
        self._seats = seats
        self._pools = pools
        self._keeper = keeper
        self._cooldown_seconds = cooldown_seconds
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to tend."""
        self._task = asyncio.create_task(self._tend_for_ever(), name="seat tender")

    async def stop(self) -> None:
        """Tend no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _tend_for_ever(self) -> None:
        while True:
            try:
                self._keeper.tell(await self._seats.tend(self._cooldown_seconds))
                failing = await self._pools.to_probe(PROBE_SECONDS)
                await asyncio.gather(*(self._probe(pool) for pool in failing))
            except StoaError as error:
                log.warning("tending seats failed", **facts_of(error))
            except Exception:
                log.exception("tending seats broke")
            await asyncio.sleep(TEND_SECONDS)

    async def _probe(self, pool: FailingPool) -> None:
        if (await probe(pool.url, pool.model)).ready:
            self._keeper.tell(await self._pools.reopen(pool.pool))
            log.info("pool is back", pool=pool.pool)
