"""The upkeep door: what is due, of all users, under the maintenance role. It only reads.

The role's grants are column lists without anything that a person said. What is found is done for
each user through the tenant door.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenancy.database.calls import FunctionCalls
from tenancy.database.roles import WrongRole
from tenancy.principal import UserId

if TYPE_CHECKING:
    from uuid import UUID

    from tenancy.database.engine import DatabaseSettings

# Nothing may be written for others than active users.
_UNPRUNED = """
    SELECT r.user_id, r.run_id FROM runs r JOIN users u USING (user_id)
    WHERE r.pruned_at IS NULL AND u.state = 'active'
      AND r.ended_at < (SELECT clock_timestamp()) - make_interval(secs => $1)
    ORDER BY r.ended_at LIMIT $2
"""
_STALE_KEYS = """
    SELECT DISTINCT k.user_id FROM (
      SELECT k.user_id FROM idempotency_keys k JOIN users u USING (user_id)
      WHERE u.state = 'active'
        AND k.created_at < (SELECT clock_timestamp()) - interval '24 hours'
      ORDER BY k.created_at LIMIT $1
    ) k
"""
_EXPIRED_ITEMS = """
    SELECT DISTINCT s.user_id FROM (
      SELECT s.user_id FROM store s JOIN users u USING (user_id)
      WHERE u.state = 'active' AND s.expires_at <= (SELECT now())
      ORDER BY s.expires_at LIMIT $1
    ) s
"""
_EXPIRED_AUTHORIZATIONS = """
    SELECT DISTINCT a.user_id FROM (
      SELECT a.user_id FROM authorizations a JOIN users u USING (user_id)
      WHERE u.state = 'active' AND a.expires_at <= (SELECT clock_timestamp())
      ORDER BY a.expires_at LIMIT $1
    ) a
"""
_DELETED_THREADS = """
    SELECT t.user_id, t.thread_id FROM threads t JOIN users u USING (user_id)
    WHERE t.deleted_at IS NOT NULL AND u.state = 'active'
    ORDER BY t.deleted_at LIMIT $1
"""
_MAY_LOOK = "SELECT has_column_privilege('idempotency_keys', 'created_at', 'SELECT')"


@dataclass(frozen=True, slots=True)
class OwnedRow:
    """A row to look after, and whose it is."""

    user_id: UserId
    row_id: UUID


@dataclass(frozen=True, slots=True)
class RowOwner:
    """A user whose rows are to be looked after."""

    user_id: UserId


class UpkeepDatabase:
    """Finds what is due. Each method is one statement in its own transaction."""

    def __init__(self, settings: DatabaseSettings) -> None:
        self._calls = FunctionCalls(settings)

    async def assert_role(self) -> None:
        """Make sure that the role may look: another one would find nothing to do, for ever.

        Raises:
            WrongRole: it may not.
        """
        (row,) = await self._calls.fetch(_MAY_LOOK)
        if not row[0]:
            raise WrongRole(
                "The role of STOA_MAINTENANCE_DATABASE_URL may not look for what is due: it is"
                " another role's. Name the maintenance role."
            )

    async def unpruned_runs(self, older_than: float, limit: int) -> list[OwnedRow]:
        """Runs that ended so many seconds ago and whose logs were not pruned, oldest first."""
        rows = await self._calls.fetch(_UNPRUNED, older_than, limit)
        return [OwnedRow(UserId(user_id), run_id) for user_id, run_id in rows]

    async def owners_of_stale_keys(self, limit: int) -> list[RowOwner]:
        """Users who have idempotency keys that are over."""
        return [RowOwner(UserId(row[0])) for row in await self._calls.fetch(_STALE_KEYS, limit)]

    async def owners_of_expired_items(self, limit: int) -> list[RowOwner]:
        """Users who keep items whose time is over."""
        return [RowOwner(UserId(row[0])) for row in await self._calls.fetch(_EXPIRED_ITEMS, limit)]

    async def owners_of_expired_authorizations(self, limit: int) -> list[RowOwner]:
        """Users who began authorizations and did not finish them in time."""
        rows = await self._calls.fetch(_EXPIRED_AUTHORIZATIONS, limit)
        return [RowOwner(UserId(row[0])) for row in rows]

    async def deleted_threads(self, limit: int) -> list[OwnedRow]:
        """Threads that their owners have deleted and that still have rows."""
        rows = await self._calls.fetch(_DELETED_THREADS, limit)
        return [OwnedRow(UserId(user_id), thread_id) for user_id, thread_id in rows]

    async def close(self) -> None:
        """Close every connection."""
        await self._calls.close()
