"""The record as operators read it: facts under references, under the maintenance role."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenancy.database.calls import FunctionCalls
from tenancy.oversight.roles import assert_maintenance

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from tenancy.database.engine import DatabaseSettings

_READ = "SELECT * FROM tenant.read_record($1, $2, $3, $4, $5, $6, $7, $8)"


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """What is asked of the record; without anything, all of it."""

    user_id: UUID | None = None
    """To whom it was done."""
    by: UUID | None = None
    """The operator, or whoever wanted to be one."""
    account: str | None = None
    """The operating system's, on the command line."""
    action: str | None = None
    begin: datetime | None = None
    end: datetime | None = None


class RecordDatabase:
    """What is on record."""

    def __init__(self, settings: DatabaseSettings) -> None:
        self._settings = settings
        self._calls = FunctionCalls(settings)

    async def assert_role(self) -> None:
        """Make sure that the role is what it must be.

        Raises:
            WrongRole: it may do more or less.
            WrongRevision: the database is not migrated to this version.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        await assert_maintenance(self._settings, self._calls)

    async def read(
        self, asked: RecordFilter, before: int | None, limit: int
    ) -> list[dict[str, Any]]:
        """Up to ``limit`` entries, the newest first, of those numbered below ``before``."""
        rows = await self._calls.fetch(
            _READ,
            *(asked.user_id, asked.by, asked.account, asked.action, asked.begin, asked.end),
            *(before, limit),
        )
        return [dict(row.items()) for row in rows]

    async def close(self) -> None:
        """Close every connection."""
        await self._calls.close()
