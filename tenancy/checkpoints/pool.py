"""The psycopg connections that LangGraph's saver and store run on."""

from __future__ import annotations

import select
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from tenancy.database.engine import translated

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    from tenancy.database.engine import DatabaseSettings
    from tenancy.principal import UserId

_KEEPALIVE_SECONDS = 5

_BEGIN_READ = "SELECT tenant.begin_read(%s)"
_BEGIN_WRITE = "SELECT tenant.begin_write(%s)"
_HOLD_FENCE = "SELECT tenant.hold_fence(%s, %s)"


@dataclass(frozen=True, slots=True)
class Fence:
    """The claim under which a worker writes for a run."""

    run_id: UUID
    number: int


class CheckpointPool:
    """Connections under the service role, given out in tenant-bound transactions only."""

    def __init__(self, settings: DatabaseSettings) -> None:
        self._pool: AsyncConnectionPool[psycopg.AsyncConnection[DictRow]] = AsyncConnectionPool(
            settings.dsn,
            min_size=1,
            max_size=settings.pool_size,
            timeout=settings.acquire_timeout,
            check=_assert_quiet,
            open=False,
            kwargs={
                "autocommit": True,
                "row_factory": dict_row,
                "prepare_threshold": 0 if settings.prepared_statements else None,
                "connect_timeout": int(settings.connect_timeout),
                "application_name": f"{settings.application_name} checkpoints",
                "options": _options(settings),
                # A connection that was cut without a word ends like one that was closed.
                "keepalives_idle": _KEEPALIVE_SECONDS,
                "keepalives_interval": _KEEPALIVE_SECONDS,
                "keepalives_count": 3,
                "tcp_user_timeout": int(settings.command_timeout * 1000),
            },
        )

    async def open(self) -> None:
        """Open the pool."""
        await self._pool.open()

    async def close(self) -> None:
        """Close every connection."""
        await self._pool.close()

    @asynccontextmanager
    async def transaction(
        self, user_id: UserId, *, fence: Fence | None = None, write: bool = False
    ) -> AsyncIterator[psycopg.AsyncCursor[DictRow]]:
        """A transaction bound to a user, and guarded by a fence where there is one.

        The guard is its last statement before the commit: the run must still be the caller's.

        Everything is pipelined: binding, statements, guard and commit cost one round trip
        where nothing is read in between.

        Raises:
            LeaseLost: the fence has moved on; nothing was written.
            UserUnavailable: the user is suspended, being erased, or gone.
            DatabaseUnavailable: no connection could be had, or it broke.
        """
        try:
            async with (
                self._pool.connection() as connection,
                connection.pipeline(),
                connection.transaction(),
                connection.cursor(binary=True, row_factory=dict_row) as cursor,
            ):
                await cursor.execute(_BEGIN_WRITE if write else _BEGIN_READ, (user_id,))
                yield cursor
                if fence is not None:
                    await cursor.execute(_HOLD_FENCE, (fence.run_id, fence.number))
        except (psycopg.Error, PoolTimeout) as error:
            raise translated(error) or error from error


async def _assert_quiet(connection: psycopg.AsyncConnection[DictRow]) -> None:
    """Give out no connection that the server has ended, without asking it.

    Nothing is to be read from an idle one; a restart of the server leaves its goodbye in all.
    Otherwise each would fail somebody once: a run taken up again would use up its attempts.
    """
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if poll.poll(0):
        await connection.close()  # or it would be put back and tried for ever
        raise psycopg.OperationalError("the server has ended this connection")


def _options(settings: DatabaseSettings) -> str:
    idle = int(settings.idle_in_transaction_timeout * 1000)
    statement = int(settings.statement_timeout * 1000)
    return (
        f"-c idle_in_transaction_session_timeout={idle} -c statement_timeout={statement} -c jit=off"
    )
