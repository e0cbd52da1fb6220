"""The cross-user door: queue and leases, under the dispatch role.

The role's grants are column lists that leave out everything a person said, so nothing that
goes through here can read a conversation. Only the worker's duties use it (a contract in
``pyproject.toml`` names its callers).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from tenancy.database.engine import DatabaseSettings, create_engine, domain_errors
from tenancy.principal import UserId

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class ClaimedRun:
    """A run that this worker owns while its lease lives and the fence stands."""

    user_id: UserId
    run_id: UUID
    fence: int


def _call(sql: str) -> sa.TextClause:
    return sa.text(sql).bindparams(sa.bindparam("worker", type_=postgresql.UUID))


_REGISTER = _call("SELECT dispatch.register_worker(:worker, :host, :pid, :lease_seconds)")
_RENEW = _call("SELECT dispatch.renew_lease(:worker, :lease_seconds)")
_CLAIM = _call("SELECT user_id, run_id, fence FROM dispatch.claim_runs(:worker, :slots, :cap)")
_RETIRE = _call("SELECT dispatch.retire_worker(:worker)")
_REAP = sa.text("SELECT dispatch.reap_expired_leases()")


class DispatchDatabase:
    """The queue and the leases. Each method is one function call in its own transaction."""

    def __init__(self, settings: DatabaseSettings) -> None:
        self._engine = create_engine(settings)

    async def register_worker(
        self, worker_id: UUID, host: str, pid: int, lease_seconds: float
    ) -> None:
        """Open a worker's lease."""
        await self._call(
            _REGISTER, worker=worker_id, host=host, pid=pid, lease_seconds=lease_seconds
        )

    async def renew_lease(self, worker_id: UUID, lease_seconds: float) -> bool:
        """Renew the lease; False if it had run out already, which nothing can undo."""
        rows = await self._call(_RENEW, worker=worker_id, lease_seconds=lease_seconds)
        return bool(rows[0][0])

    async def claim_runs(
        self, worker_id: UUID, slots: int, max_running_per_user: int
    ) -> list[ClaimedRun]:
        """Claim up to ``slots`` runs, heads of their threads, within each user's cap.

        Raises:
            LeaseLost: this worker's own lease has run out.
        """
        rows = await self._call(_CLAIM, worker=worker_id, slots=slots, cap=max_running_per_user)
        return [ClaimedRun(UserId(user_id), run_id, fence) for user_id, run_id, fence in rows]

    async def reap_expired_leases(self) -> int:
        """Put the runs of dead workers back into the queue; return how many."""
        return int((await self._call(_REAP))[0][0])

    async def retire_worker(self, worker_id: UUID) -> int:
        """Leave in order: give back what is held, without counting an attempt; say how many."""
        return int((await self._call(_RETIRE, worker=worker_id))[0][0])

    async def close(self) -> None:
        """Close every connection."""
        await self._engine.dispose()

    async def _call(self, statement: sa.TextClause, **params: Any) -> Sequence[sa.Row[Any]]:  # noqa: ANN401
        with domain_errors():
            async with self._engine.begin() as connection:
                return (await connection.execute(statement, params)).all()
