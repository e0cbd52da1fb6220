"""The parts of the service that everybody shares, and whether they can do their work.

Under the dispatch role. What is published, and what may follow what, is in ``sql/runtime.sql``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tenancy.database.calls import FunctionCalls

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from tenancy.database.engine import DatabaseSettings

Status = Literal["available", "degraded", "unavailable"]
PoolFailure = Literal["unreachable", "model_missing"]

WORKERS = "workers"
"""The part that is all workers together. A pool's is ``model:POOL``."""

_READ = "SELECT * FROM dispatch.read_components()"
_LOOK = "SELECT dispatch.look_for_workers()"
_PUBLISH_WORKER = "SELECT dispatch.publish_worker($1)"
_POOL_CHECKED = "SELECT dispatch.pool_checked($1, $2, $3)"


@dataclass(frozen=True, slots=True)
class Component:
    """How a part stands."""

    component: str
    status: Status
    reason: str | None
    """A stable code; None where it is available."""
    occurred_at: datetime | None
    """Since when it has not been."""
    version: int
    """Grows with each change."""


class ComponentDatabase:
    """Reads how the parts stand, and says so of workers and pools."""

    def __init__(self, settings: DatabaseSettings) -> None:
        self._calls = FunctionCalls(settings)

    async def look(self) -> list[Component]:
        """Look whether there is a worker, which nobody else may be left to say; then read all.

        Raises:
            DatabaseUnavailable: Postgres cannot be reached.
        """
        await self._calls.fetch(_LOOK)
        return [Component(**row) for row in await self._calls.fetch(_READ)]

    async def publish_worker(self, worker_id: UUID) -> bool:
        """Say that a worker has passed its checks; whether that is news.

        Nothing is said of one whose lease is over.
        """
        (row,) = await self._calls.fetch(_PUBLISH_WORKER, worker_id)
        return bool(row[0])

    async def pool_checked(
        self, pool: str, worker_id: UUID | None, failure: PoolFailure | None
    ) -> bool:
        """Note what a look at a pool has found; whether that is news.

        One that a worker found well when it began is spoken of from then on.
        One that fails is taken out until a probe finds it well.
        """
        (row,) = await self._calls.fetch(_POOL_CHECKED, pool, worker_id, failure)
        return bool(row[0])

    async def close(self) -> None:
        """Close every connection."""
        await self._calls.close()
