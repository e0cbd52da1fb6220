"""Erasures as people and operators ask for them, and ask after them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from app.databases import dispatch_settings
from app.erasure.errors import ErasureNotConfigured, ErasureNotFound
from app.erasure.signing import required_keys
from app.erasure.views import ErasureView, State, erasure_view, steps_of
from tenancy.database.roles import assert_role
from tenancy.erasure.records import ErasureDatabase
from tenancy.errors import UserNotFound

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from typing import Literal
    from uuid import UUID

    from app.settings import Settings
    from tenancy.acts import Act
    from tenancy.principal import UserId

_CONNECTIONS = 2
"""Few leave at once."""


class ErasureRequests:
    """Begins erasures, which workers then lead to their end. Connects when it is first used."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._dispatch = replace(dispatch_settings(settings), pool_size=_CONNECTIONS)
        self._database = ErasureDatabase(self._dispatch)

    async def assert_role(self) -> None:
        """Make sure that the dispatch role is what it must be.

        Raises:
            WrongRole: it may do more or less.
            WrongRevision: the database is not migrated to this version.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        await assert_role(self._dispatch, reads_content=False)

    async def begin(
        self,
        user_id: UserId,
        requested_by: Literal["person", "operator"],
        act: Act | None = None,
    ) -> ErasureView:
        """Begin to erase a person; if that was begun before, the same erasure is returned.

        Everybody is told, so that they let go of the person.

        Raises:
            ErasureNotConfigured: there are no keys, by which it could be kept and proven, or no
                maintenance role, by which it could be verified.
            UserNotFound: nobody has this id.
            UserUnavailable: whoever acts may not any more.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        if self._settings.maintenance_database_url is None:
            raise ErasureNotConfigured
        required_keys(self._settings)
        erasure_id = await self._database.begin(user_id, requested_by, act=act)
        if erasure_id is None:
            raise UserNotFound
        await self._database.announce(user_id)
        return await self.find(erasure_id)

    async def find(self, erasure_id: UUID) -> ErasureView:
        """How far an erasure is.

        Raises:
            ErasureNotFound: there is none of that id.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        found = await self._database.find(erasure_id)
        if found is None:
            raise ErasureNotFound
        return erasure_view(found)

    async def awaited(self, erasure: ErasureView) -> Sequence[UUID]:
        """The workers that have to let go of the person before anything is deleted.

        Raises:
            DatabaseUnavailable: Postgres cannot be reached.
        """
        if erasure.state not in ("begun", "stopping"):
            return ()
        return await self._database.awaited(erasure.erasure_id)

    async def list(
        self, limit: int, offset: int = 0, state: State | None = None
    ) -> tuple[list[ErasureView], int]:
        """Erasures, the newest first, and how many there are.

        Raises:
            DatabaseUnavailable: Postgres cannot be reached.
        """
        steps = None if state is None else steps_of(state)
        found, total = await self._database.list(limit, offset, steps)
        return [erasure_view(each) for each in found], total

    async def close(self) -> None:
        """Close every connection."""
        await self._database.close()


@asynccontextmanager
async def erasure_requests(settings: Settings) -> AsyncIterator[ErasureRequests]:
    """The same for one command.

    Raises:
        WrongRole: the dispatch role may do more or less than it must.
        DatabaseUnavailable: Postgres cannot be reached.
    """
    requests = ErasureRequests(settings)
    try:
        await requests.assert_role()
        yield requests
    finally:
        await requests.close()
