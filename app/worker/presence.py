"""A worker's word that there is somebody to do the work, once it has passed its checks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog
from tenacity import AsyncRetrying, retry_if_exception_type, wait_random_exponential

from app.logging import facts_of, record_failure
from app.models.health import lasting_failure
from tenancy.errors import StoaError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from tenacity import RetryCallState

    from tenancy.scheduler.components import ComponentDatabase
    from tenancy.scheduler.pools import PoolDeclaration

log = structlog.get_logger(__name__)

_LONGEST_PAUSE_SECONDS = 2.0


async def check_pools(
    components: ComponentDatabase, pools: Sequence[PoolDeclaration], worker_id: UUID
) -> None:
    """Look at all pools, and say how each was found.

    Raises:
        DatabaseUnavailable: Postgres cannot be reached.
    """
    found = await asyncio.gather(*(lasting_failure(pool.url, pool.model) for pool in pools))
    for pool, failure in zip(pools, found, strict=True):
        await components.pool_checked(pool.pool, worker_id, failure)


class Presence:
    """Says that the worker is ready, however long it takes the database to hear it."""

    def __init__(self, components: ComponentDatabase, worker_id: UUID) -> None:
        self._components = components
        self._worker_id = worker_id
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to say so."""
        self._task = asyncio.create_task(self._publish(), name="presence")

    async def stop(self) -> None:
        """Say it no more, if nobody has heard it. Of a worker that leaves, its absence tells."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _publish(self) -> None:
        async for attempt in AsyncRetrying(
            retry=retry_if_exception_type(Exception),  # a worker of which nobody knows is missed
            wait=wait_random_exponential(0.1, max=_LONGEST_PAUSE_SECONDS),
            before_sleep=_log_attempt,
        ):
            with attempt:
                await self._components.publish_worker(self._worker_id)


def _log_attempt(attempt: RetryCallState) -> None:
    error = attempt.outcome.exception() if attempt.outcome is not None else None
    if isinstance(error, StoaError):
        log.warning("a worker that is ready could not say so", **facts_of(error))
    elif error is not None:
        record_failure("presence", error)
