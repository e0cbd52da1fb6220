"""What operators look at goes on record before they are shown it, and who only wants to be one."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from app.databases import dispatch_settings
from tenancy.oversight.acts import ActDatabase

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    from app.settings import Settings
    from tenancy.acts import Act

_CONNECTIONS = 2
"""Operators are few."""


class Acts(ActDatabase):
    """The record of what operators do. Connects when it is first used."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(replace(dispatch_settings(settings), pool_size=_CONNECTIONS))


@asynccontextmanager
async def acts(settings: Settings) -> AsyncIterator[Acts]:
    """The same for one command.

    Raises:
        WrongRole: the dispatch role may do more or less than it must.
        DatabaseUnavailable: Postgres cannot be reached.
    """
    database = Acts(settings)
    try:
        await database.assert_role()
        yield database
    finally:
        await database.close()


async def looked(
    settings: Settings, act: Act, user_id: UUID | None = None, target: str | None = None
) -> None:
    """Put on record that a command looks, at one person or thing or at all.

    Raises:
        DatabaseUnavailable: Postgres cannot be reached.
    """
    async with acts(settings) as record:
        await record.looked(act, user_id, target)
