"""What operators look at, and who wants to be one: put on record, under the dispatch role.

What they change is put on record by the function that changes it, in the same transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenancy.database.calls import FunctionCalls
from tenancy.oversight.roles import assert_dispatch

if TYPE_CHECKING:
    from uuid import UUID

    from tenancy.acts import Act
    from tenancy.database.engine import DatabaseSettings

_LOOK = "SELECT dispatch.note_look($1, $2, $3, $4, $5)"
_REFUSAL = "SELECT dispatch.note_refusal($1, $2, $3)"
_DEED = "SELECT dispatch.note_deed($1, $2, $3, $4, $5)"


class ActDatabase:
    """Keeps the record. Looks and refusals stand there once an hour for each of them."""

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

    async def looked(
        self, act: Act, user_id: UUID | None = None, target: str | None = None
    ) -> None:
        """Somebody looks, at one person or thing or at all: before they are shown anything.

        Raises:
            UserUnavailable: they are suspended, being erased, or gone: they are no operator now.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        await self._calls.fetch(_LOOK, user_id, target, *act.arguments)

    async def refused(self, act: Act) -> None:
        """Somebody who is no operator wanted to act as one.

        Raises:
            DatabaseUnavailable: Postgres cannot be reached.
        """
        await self._calls.fetch(_REFUSAL, *act.arguments)

    async def did(self, act: Act, action: str, target: str | None = None) -> None:
        """Somebody does what no function of the database's does as a whole: before they begin.

        Raises:
            UserUnavailable: they are no operator now.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        await self._calls.fetch(_DEED, action, target, *act.arguments)

    async def close(self) -> None:
        """Close every connection."""
        await self._calls.close()
