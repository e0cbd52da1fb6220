"""The cross-user door: queue and leases, under the dispatch role.

The role's grants are column lists that leave out everything a person said, so nothing that
goes through here can read a conversation. Only the worker's duties use it (a contract in
``pyproject.toml`` names its callers).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenancy.database.calls import FunctionCalls
from tenancy.principal import ClaimedRun, UserId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime
    from uuid import UUID

    from tenancy.database.engine import DatabaseSettings


_REGISTER = "SELECT dispatch.register_worker($1, $2, $3, $4, $5)"
_RENEW = "SELECT dispatch.renew_lease($1, $2)"
_CLAIM = "SELECT user_id, run_id, fence FROM dispatch.claim_runs($1, $2, $3, $4)"
_HELD = "SELECT user_id, run_id, fence, cancel_requested FROM dispatch.held_runs($1)"
_RELEASE = "SELECT dispatch.release_run($1, $2, $3, $4)"
_RELEASE_BUT = "SELECT dispatch.release_runs_but($1, $2)"
_DRAIN = "SELECT dispatch.drain_worker($1)"
_RETIRE = "SELECT dispatch.retire_worker($1)"
_REAP = "SELECT dispatch.reap_expired_leases()"
_FIND_EXPIRED = "SELECT user_id, run_id FROM dispatch.find_expired_approvals($1)"
_UNAVAILABLE = "SELECT dispatch.unavailable_of($1)"
_CLAIM_CHECKS = "SELECT user_id, connection_id FROM dispatch.claim_checks($1, $2, $3)"


@dataclass(frozen=True, slots=True)
class HeldRun:
    """A run that a worker holds."""

    run: ClaimedRun
    cancel_requested: bool


@dataclass(frozen=True, slots=True)
class WantedCheck:
    """A connection that somebody wants to be looked at, and whose it is."""

    user_id: UserId
    connection_id: UUID


@dataclass(frozen=True, slots=True)
class OverdueRun:
    """A run that asks what nobody decided in time, and whose it is."""

    user_id: UserId
    run_id: UUID


class DispatchDatabase:
    """The queue and the leases. Each method is one function call in its own transaction."""

    def __init__(self, settings: DatabaseSettings) -> None:
        self._calls = FunctionCalls(settings)

    async def register_worker(
        self,
        worker_id: UUID,
        host: str,
        pid: int,
        lease_seconds: float,
        process_started_at: datetime | None = None,
    ) -> None:
        """Open a worker's lease. The process's start time tells its PID from a later one's."""
        await self._calls.fetch(_REGISTER, worker_id, host, pid, process_started_at, lease_seconds)

    async def renew_lease(self, worker_id: UUID, lease_seconds: float) -> bool:
        """Renew the lease; False if it had run out already, which nothing can undo."""
        (row,) = await self._calls.fetch(_RENEW, worker_id, lease_seconds)
        return bool(row[0])

    async def claim_runs(
        self, worker_id: UUID, slots: int, limits: Mapping[str, object], model: str
    ) -> list[ClaimedRun]:
        """Claim up to ``slots`` runs, heads of their threads, within each user's cap.

        Those come first who have used least of ``model``; ``limits`` are the service's own.

        Raises:
            LeaseLost: this worker's own lease has run out.
        """
        rows = await self._calls.fetch(_CLAIM, worker_id, slots, model, dict(limits))
        return [ClaimedRun(UserId(user_id), run_id, fence) for user_id, run_id, fence in rows]

    async def held_runs(self, worker_id: UUID) -> list[HeldRun]:
        """What a worker holds, and what was asked of it meanwhile."""
        rows = await self._calls.fetch(_HELD, worker_id)
        return [
            HeldRun(ClaimedRun(UserId(user_id), run_id, fence), cancel_requested)
            for user_id, run_id, fence, cancel_requested in rows
        ]

    async def release_run(self, run: ClaimedRun, *, spend: bool) -> bool:
        """Put one run back into the queue; False if it was this claim's no longer.

        ``spend``: it counts as an attempt that was lost, as a crash would.
        """
        (row,) = await self._calls.fetch(_RELEASE, run.user_id, run.run_id, run.fence, spend)
        return bool(row[0])

    async def release_runs_but(self, worker_id: UUID, known: Iterable[UUID]) -> int:
        """Put back what the worker holds without knowing, no attempt spent; say how many."""
        (row,) = await self._calls.fetch(_RELEASE_BUT, worker_id, list(known))
        return int(row[0])

    async def reap_expired_leases(self) -> int:
        """Put the runs of dead workers back into the queue; return how many."""
        (row,) = await self._calls.fetch(_REAP)
        return int(row[0])

    async def unavailable_of(self, users: Iterable[UserId]) -> list[UserId]:
        """Of these users, those for whom nothing may be written: suspended, leaving, or gone."""
        rows = await self._calls.fetch(_UNAVAILABLE, list(users))
        return [UserId(row[0]) for row in rows]

    async def find_expired_approvals(self, most: int) -> list[OverdueRun]:
        """Runs with questions whose time is over, at most so many, the longest overdue first."""
        rows = await self._calls.fetch(_FIND_EXPIRED, most)
        return [OverdueRun(UserId(user_id), run_id) for user_id, run_id in rows]

    async def claim_checks(self, most: int, of_each: int, seconds: float) -> list[WantedCheck]:
        """Take on up to so many wanted checks of connections, so many of each user's at a time.

        After so many seconds others take them on, whatever became of this process.
        """
        rows = await self._calls.fetch(_CLAIM_CHECKS, most, of_each, seconds)
        return [WantedCheck(UserId(user_id), connection_id) for user_id, connection_id in rows]

    async def drain_worker(self, worker_id: UUID) -> None:
        """Claim nothing more for this worker."""
        await self._calls.fetch(_DRAIN, worker_id)

    async def retire_worker(self, worker_id: UUID) -> int:
        """Leave in order: give back what is held, no attempt spent; say how many."""
        (row,) = await self._calls.fetch(_RETIRE, worker_id)
        return int(row[0])

    async def close(self) -> None:
        """Close every connection."""
        await self._calls.close()
