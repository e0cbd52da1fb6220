"""The tenant door: transactions bound to one user, and to nothing else.

``reading`` gives a transaction that sees the owner's rows; ``writing`` also holds the owner's
row in ``users``, so that nothing is written for somebody who is being erased. Both commit when
the block ends and roll back when it raises or is cancelled. The binding is local to the
transaction: the next checkout of the connection starts without any.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import UUID

from tenancy.database.calls import FunctionCalls
from tenancy.database.engine import DatabaseSettings, create_engine, domain_errors
from tenancy.principal import UserId

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from uuid import UUID as ErasureId  # noqa: N811 - SQLAlchemy has a UUID, too

    import asyncpg
    from sqlalchemy.ext.asyncio import AsyncConnection
    from sqlalchemy.sql.base import Executable

    from tenancy.principal import Owner

_BEGIN_READ = sa.text("SELECT tenant.begin_read(:user)").bindparams(
    sa.bindparam("user", type_=UUID)
)
_BEGIN_WRITE = sa.text("SELECT tenant.begin_write(:user)").bindparams(
    sa.bindparam("user", type_=UUID)
)
_SIGN_IN = "SELECT tenant.sign_in($1, $2, $3, $4, $5)"
_FIND_USER = "SELECT user_id, erasure_id FROM tenant.find_user($1, $2)"


class TenantRead:
    """A transaction that sees one user's rows. Made by :class:`TenantDatabase` only."""

    def __init__(self, connection: AsyncConnection, user_id: UserId) -> None:
        self._connection = connection
        self.user_id = user_id

    async def all(
        self, statement: Executable, params: Mapping[str, Any] | None = None
    ) -> Sequence[sa.Row[Any]]:
        """Every row of a query."""
        return (await self._connection.execute(statement, params)).all()

    async def first(
        self, statement: Executable, params: Mapping[str, Any] | None = None
    ) -> sa.Row[Any] | None:
        """The first row of a query, or None."""
        return (await self._connection.execute(statement, params)).first()

    async def scalar(self, statement: Executable, params: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401 - a column of any type
        """The first column of the first row, or None."""
        return (await self._connection.execute(statement, params)).scalar()


class TenantWrite(TenantRead):
    """A transaction that may change one user's rows."""

    async def change(self, statement: Executable, params: Mapping[str, Any] | None = None) -> int:
        """Run an INSERT, UPDATE or DELETE; return how many rows it touched."""
        return (await self._connection.execute(statement, params)).rowcount


class TenantDatabase:
    """Gives out tenant-bound transactions under the service role."""

    def __init__(self, settings: DatabaseSettings) -> None:
        self._engine = create_engine(settings)
        self._calls = FunctionCalls(settings)

    @asynccontextmanager
    async def reading(self, owner: Owner) -> AsyncIterator[TenantRead]:
        """A transaction that sees what the owner may see.

        Raises:
            DatabaseUnavailable: Postgres cannot be reached.
        """
        with domain_errors():
            async with self._engine.begin() as connection:
                await connection.execute(_BEGIN_READ, {"user": owner.user_id})
                yield TenantRead(connection, owner.user_id)

    @asynccontextmanager
    async def writing(self, owner: Owner) -> AsyncIterator[TenantWrite]:
        """A transaction that may change what the owner owns.

        Raises:
            UserUnavailable: the owner is suspended, being erased, or gone.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        with domain_errors():
            async with self._engine.begin() as connection:
                await connection.execute(_BEGIN_WRITE, {"user": owner.user_id})
                yield TenantWrite(connection, owner.user_id)

    async def call(
        self,
        owner: Owner,
        function: str,
        *arguments: Any,  # noqa: ANN401 - whatever the function takes
    ) -> list[asyncpg.Record]:
        """Call a function of schema ``tenant`` whose first argument is the user it binds itself.

        The hot path: the call is its own transaction, so bind, guard, work and commit are one
        round trip. Until the function has bound the user, every table of a person raises.

        Raises:
            LeaseLost: the function's guard found that the run is another worker's.
            UserUnavailable: the owner is suspended, being erased, or gone.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        return await self._calls.fetch(function, owner.user_id, *arguments)

    async def sign_in(
        self,
        identity: str,
        candidate: UserId,
        name: str | None,
        email: str | None,
        identity_hashes: Sequence[bytes] = (),
    ) -> UserId:
        """Return the user behind a verified identity; the candidate becomes them if new.

        By the hashes it is found whether somebody of that identity left before: then they have no
        more than was left of their budget, and what else was settled for them.

        Raises:
            TooManyReturns: somebody of that identity has left ten times within a day.
        """
        (row,) = await self._calls.fetch(
            _SIGN_IN, candidate, identity, name, email, list(identity_hashes)
        )
        return UserId(row[0])

    async def find_user(
        self, identity: str, identity_hashes: Sequence[bytes]
    ) -> tuple[UserId | None, ErasureId | None]:
        """The user behind a verified identity; where there is none, the last one's erasure.

        Of an erasure nothing is known any more once its tombstone is gone.
        """
        (row,) = await self._calls.fetch(_FIND_USER, identity, list(identity_hashes))
        user_id, erasure_id = row
        return None if user_id is None else UserId(user_id), erasure_id

    async def close(self) -> None:
        """Close every connection."""
        await self._calls.close()
        await self._engine.dispose()
