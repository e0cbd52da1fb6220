"""People as operators know them, and whether they may use the service."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from app.admin.users_views import UserDetail, UserPage, user_detail
from app.databases import dispatch_settings, maintenance_settings
from app.sharing import default_limits
from tenancy.errors import OwnAccount
from tenancy.oversight.people import PeopleDatabase, UserStates

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    from app.settings import Settings
    from tenancy.acts import Act
    from tenancy.oversight.people import PeopleOrder, UserState

_CONNECTIONS = 1
"""Operators are few, and look at one thing after the other."""


class UsersAdmin:
    """Everybody's accounts, without a word of what is in them. Connects when it is first used."""

    def __init__(self, settings: Settings) -> None:
        self._people = PeopleDatabase(
            replace(maintenance_settings(settings), pool_size=_CONNECTIONS)
        )
        self._states = UserStates(replace(dispatch_settings(settings), pool_size=_CONNECTIONS))
        self._defaults = default_limits(settings)

    async def assert_role(self) -> None:
        """Make sure that both roles are what they must be.

        Raises:
            WrongRole: one may do more or less.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        await self._states.assert_role()
        await self._people.assert_role()

    async def users(
        self, state: UserState | None, order: PeopleOrder, limit: int, offset: int
    ) -> UserPage:
        """A page of people, in a state where one is asked for: newest first, or last seen."""
        found = await self._people.people(state, order, limit, offset)
        return UserPage.model_validate(found)

    async def user(self, user_id: UUID) -> UserDetail:
        """One person.

        Raises:
            UserNotFound: nobody has this id.
        """
        return user_detail(await self._people.person(user_id, self._defaults))

    async def suspend(self, user_id: UUID, act: Act) -> UserDetail:
        """Let somebody use the service no more until they are resumed; nothing of theirs is lost.

        Raises:
            UserNotFound: nobody has this id.
            OwnAccount: it is the operator's own.
            UserErasing: they are being erased.
        """
        if user_id == act.by:
            raise OwnAccount
        await self._states.set(user_id, "suspended", act)
        return await self.user(user_id)

    async def resume(self, user_id: UUID, act: Act) -> UserDetail:
        """Let somebody who was suspended use the service again; what waited goes on.

        Raises:
            UserNotFound: nobody has this id.
            UserErasing: they are being erased.
        """
        await self._states.set(user_id, "active", act)
        return await self.user(user_id)

    async def close(self) -> None:
        """Close every connection."""
        await self._people.close()
        await self._states.close()


@asynccontextmanager
async def users_admin(settings: Settings) -> AsyncIterator[UsersAdmin]:
    """The same for one command.

    Raises:
        WrongRole: a role may do more or less than it must.
        DatabaseUnavailable: Postgres cannot be reached.
    """
    admin = UsersAdmin(settings)
    try:
        await admin.assert_role()
        yield admin
    finally:
        await admin.close()
