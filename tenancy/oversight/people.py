"""People as operators know them, and whether they may use the service; no content.

Two doors: what there is of them under the maintenance role, their state under the dispatch role.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from tenancy.database.calls import FunctionCalls
from tenancy.database.signals import RUN_QUEUED, USER_CHANGED
from tenancy.errors import UserErasing, UserNotFound, UserUnavailable
from tenancy.oversight.roles import assert_dispatch, assert_maintenance

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from tenancy.acts import Act
    from tenancy.database.engine import DatabaseSettings

UserState = Literal["active", "suspended", "erasing"]
PeopleOrder = Literal["created_at", "last_seen_at"]

_PEOPLE = "SELECT tenant.people($1, $2, $3, $4)"
_PERSON = "SELECT tenant.person($1, $2)"
_SET_STATE = "SELECT dispatch.set_user_state($1, $2, $3, $4, $5)"
_STATE = "SELECT u.state FROM public.users u WHERE u.user_id = $1"
_NOTIFY = "SELECT pg_notify($1, $2)"


class PeopleDatabase:
    """Everybody, in numbers. Each method is one snapshot."""

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

    async def people(
        self, state: UserState | None, order: PeopleOrder, limit: int, offset: int
    ) -> dict[str, Any]:
        """A page of people, newest or last seen first, and how many there are in all."""
        (row,) = await self._calls.fetch(_PEOPLE, state, order, limit, offset)
        page: dict[str, Any] = row[0]
        return page

    async def person(self, user_id: UUID, defaults: Mapping[str, object]) -> dict[str, Any]:
        """All of a person that an operator may know. ``defaults`` are the service's own limits.

        Raises:
            UserNotFound: nobody has this id.
        """
        (row,) = await self._calls.fetch(_PERSON, user_id, dict(defaults))
        if row[0] is None:
            raise UserNotFound
        person: dict[str, Any] = row[0]
        return person

    async def close(self) -> None:
        """Close every connection."""
        await self._calls.close()


class UserStates:
    """Who may use the service."""

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
        await assert_dispatch(self._settings, self._calls)

    async def set(self, user_id: UUID, state: Literal["active", "suspended"], act: Act) -> None:
        """Suspend somebody, or let them use the service again; said to every process.

        Raises:
            UserNotFound: nobody has this id.
            UserErasing: they are being erased.
            UserUnavailable: the operator may not use the service any more.
        """
        try:
            (row,) = await self._calls.fetch(_SET_STATE, user_id, state, *act.arguments)
        except UserUnavailable:
            match await self._state(user_id):
                case "erasing":
                    raise UserErasing from None
                case None:  # their last row has gone since
                    raise UserNotFound from None
            raise
        if row[0] is None:
            raise UserNotFound
        await self._calls.fetch(_NOTIFY, USER_CHANGED, str(user_id))
        if state == "active":
            await self._calls.fetch(_NOTIFY, RUN_QUEUED, "")  # what waited may be claimed again

    async def close(self) -> None:
        """Close every connection."""
        await self._calls.close()

    async def _state(self, user_id: UUID) -> str | None:
        """By which it is known who of the two cannot be used: who sets it, or whose it is."""
        return next((row[0] for row in await self._calls.fetch(_STATE, user_id)), None)
