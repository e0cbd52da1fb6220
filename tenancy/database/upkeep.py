"""The upkeep door: what is due, of all users, under the maintenance role.

The role's grants are column lists without anything that a person said. What is found is done for
each user through the tenant door; only what is nobody's is dropped here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenancy.database.calls import FunctionCalls
from tenancy.database.roles import WrongRole
from tenancy.principal import UserId

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection
    from datetime import datetime
    from uuid import UUID

    from tenancy.database.due import DropStatement, DueQuery
    from tenancy.database.engine import DatabaseSettings

_COUNTS = "SELECT tenant.count_rows($1)"
_USERS = """
    SELECT u.user_id FROM users u WHERE $1::uuid IS NULL OR u.user_id > $1
    ORDER BY u.user_id LIMIT $2
"""
_USERS_AT_ONCE = 5000
_NOW = "SELECT clock_timestamp()"
_DATABASE_ID = """
    SELECT concat(s.system_identifier, '/', d.oid)
    FROM pg_control_system() s, pg_database d WHERE d.datname = current_database()
"""
_MAY_LOOK = "SELECT has_column_privilege('idempotency_keys', 'created_at', 'SELECT')"


@dataclass(frozen=True, slots=True)
class DueRow:
    """Something to look after, and whose it is."""

    user_id: UserId
    row_id: UUID | None
    """None: all of its kind that the user has and that is due."""
    overdue_seconds: float

    @property
    def id(self) -> UUID:
        """By which it can be passed over."""
        return self.row_id or self.user_id


@dataclass(frozen=True, slots=True)
class Dropped:
    """What one statement deleted."""

    rows: int
    overdue_seconds: float
    """Of the row that had been due for longest; 0 where none was."""


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

    async def due(
        self, what: DueQuery, most: int, *seconds: float, but: Collection[UUID] = ()
    ) -> list[DueRow]:
        """Up to so many that are due, longest due first, but for those of some ids."""
        rows = await self._calls.fetch(what, most, list(but), *seconds)
        return [DueRow(UserId(user_id), row_id, overdue) for user_id, row_id, overdue in rows]

    async def drop(self, what: DropStatement, most: int, *seconds: float) -> Dropped:
        """Delete up to so many rows that are nobody's and due."""
        (row,) = await self._calls.fetch(what.sql, most, *seconds)
        return Dropped(int(row[0]), max(row[1] or 0.0, 0.0))

    async def now(self) -> datetime:
        """The database's clock."""
        (row,) = await self._calls.fetch(_NOW)
        now: datetime = row[0]
        return now

    async def count_rows(self, user_id: UserId) -> dict[str, int]:
        """How many rows each table has of a person, zeros too."""
        (row,) = await self._calls.fetch(_COUNTS, user_id)
        counts: dict[str, int] = row[0]
        return counts

    async def every_user(self) -> AsyncIterator[UserId]:
        """Everybody, whatever their state, in the order of their ids; read in batches."""
        after: UserId | None = None
        while rows := await self._calls.fetch(_USERS, after, _USERS_AT_ONCE):
            for row in rows:
                after = UserId(row[0])
                yield after

    async def database_id(self) -> str:
        """What tells this database from any other, on whichever server."""
        (row,) = await self._calls.fetch(_DATABASE_ID)
        return str(row[0])

    async def close(self) -> None:
        """Close every connection."""
        await self._calls.close()
