"""The record of what was done with everybody's accounts, as operators read it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from app.admin.audit_views import RecordEntry
from app.databases import maintenance_settings
from tenancy.oversight.record import RecordDatabase, RecordFilter
from tenancy.scheduler.usage import check_times

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime

    from app.settings import Settings

_CONNECTIONS = 1
MOST_NUMBER = 2**63 - 1
"""Entries are numbered in 64 bits."""


def operator_named(name: str) -> UUID | str:
    """Who is meant: a person by their id, or else an account of an operating system."""
    try:
        return UUID(name)
    except ValueError:
        return name


class AuditAdmin:
    """What is on record. Connects when it is first used."""

    def __init__(self, settings: Settings) -> None:
        self._database = RecordDatabase(
            replace(maintenance_settings(settings), pool_size=_CONNECTIONS)
        )

    async def assert_role(self) -> None:
        """Make sure that the maintenance role is what it must be.

        Raises:
            WrongRole: it may do more or less.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        await self._database.assert_role()

    async def entries(
        self,
        *,
        user_id: UUID | None = None,
        by: UUID | str | None = None,
        action: str | None = None,
        begin: datetime | None = None,
        end: datetime | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[RecordEntry]:
        """Entries, the newest first: done to somebody, by an operator or an account, in a time.

        Raises:
            InvalidInput: there is no such time.
        """
        check_times(begin, end)
        person, account = (None, by) if isinstance(by, str) else (by, None)
        asked = RecordFilter(user_id, person, account, action, begin, end)
        found = await self._database.read(asked, before, limit)
        return [RecordEntry.model_validate(entry) for entry in found]

    async def close(self) -> None:
        """Close every connection."""
        await self._database.close()


@asynccontextmanager
async def audit_admin(settings: Settings) -> AsyncIterator[AuditAdmin]:
    """The same for one command.

    Raises:
        WrongRole: the maintenance role may do more or less than it must.
        DatabaseUnavailable: Postgres cannot be reached.
    """
    admin = AuditAdmin(settings)
    try:
        await admin.assert_role()
        yield admin
    finally:
        await admin.close()
