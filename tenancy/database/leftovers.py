"""The cross-user door of reconciliation: what earlier processes left, under the dispatch role.

As through ``crossing``, nothing that a person said can be read here. Only ``tenancy.reconcile``
uses it (a contract in ``pyproject.toml`` says so).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenancy.database.calls import FunctionCalls
from tenancy.principal import ClaimedRun, UserId
from tenancy.reconcile.facts import Lease, Outcome, ProcessName

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from tenancy.database.engine import DatabaseSettings

_WORKERS = "SELECT worker_id, host, pid, process_started_at, lease FROM dispatch.find_workers()"
_LOST_RUNS = (
    "SELECT user_id, run_id, fence, host, pid, process_started_at, lease"
    " FROM dispatch.find_lost_runs()"
)
_TAKE_BACK = "SELECT dispatch.take_back_run($1, $2, $3)"
_REMOVE = "SELECT dispatch.remove_worker($1)"
_CHECK = "SELECT kind, subject FROM dispatch.check_agreement($1, $2) ORDER BY kind, subject"
_PUT_IN_ORDER = "SELECT dispatch.put_in_order($1, $2)"


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker's row, and the process that wrote it."""

    worker_id: UUID
    process: ProcessName
    lease: Lease


@dataclass(frozen=True, slots=True)
class LostRun:
    """A run that is ``running`` without a living lease, and the process that had it."""

    run: ClaimedRun
    process: ProcessName
    lease: Lease


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Something on which seats, leases and queue do not agree."""

    what: str
    """As ``tenancy/sql/agreement.sql`` says."""
    subject: UUID
    """The call, or the person whose queue it is."""


class LeftoverDatabase:
    """What earlier processes left. Each method is one function call in its own transaction."""

    def __init__(self, settings: DatabaseSettings) -> None:
        self._calls = FunctionCalls(settings)

    async def workers(self) -> list[WorkerRow]:
        """Every worker that the database knows."""
        return [
            WorkerRow(worker_id, ProcessName(*process), Lease(lease))
            for worker_id, *process, lease in await self._calls.fetch(_WORKERS)
        ]

    async def lost_runs(self) -> list[LostRun]:
        """Every run that is ``running`` without a living lease."""
        return [
            LostRun(ClaimedRun(UserId(user_id), run_id, fence), ProcessName(*process), Lease(lease))
            for user_id, run_id, fence, *process, lease in await self._calls.fetch(_LOST_RUNS)
        ]

    async def take_back(self, run: ClaimedRun) -> Outcome:
        """Put a lost run back into the queue under a higher fence; an attempt is spent."""
        (row,) = await self._calls.fetch(_TAKE_BACK, run.user_id, run.run_id, run.fence)
        return Outcome(row[0])

    async def remove_worker(self, worker_id: UUID) -> Outcome:
        """Remove a worker's row whose lease is over and that holds no run."""
        (row,) = await self._calls.fetch(_REMOVE, worker_id)
        return Outcome(row[0])

    async def disagreements(
        self, cooldown_seconds: float, limits: Mapping[str, Any]
    ) -> list[Disagreement]:
        """On what seats, leases and queue do not agree; ``limits`` are the service's own."""
        rows = await self._calls.fetch(_CHECK, cooldown_seconds, dict(limits))
        return [Disagreement(*row) for row in rows]

    async def put_in_order(self, cooldown_seconds: float, limits: Mapping[str, Any]) -> None:
        """Have them agree again, as far as that takes nothing from anybody who may be alive."""
        await self._calls.fetch(_PUT_IN_ORDER, cooldown_seconds, dict(limits))

    async def close(self) -> None:
        """Close every connection."""
        await self._calls.close()
