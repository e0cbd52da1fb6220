"""The database goes away, is full, or lets nobody in: domain errors, never a driver's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import make_url

from tenancy.checkpoints.pool import CheckpointPool
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.engine import (
    DatabaseUnavailable,
    LoginRefused,
    domain_errors,
    translated,
)
from tenancy.database.roles import assert_role
from tenancy.database.signals import RUN_QUEUED, Listener
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import Principal
from tests.support.tenancy import PATIENCE, TestDatabase

WRONG = "not-the-password"


def changed(database: TestDatabase, /, **parts: Any) -> str:
    """The service role's DSN with something else in it."""
    url = make_url(database.dsn("service")).set(**parts)
    return url.render_as_string(hide_password=False)


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.TooManyConnectionsError("sorry, too many clients already"),
        asyncpg.DiskFullError("could not extend file"),
        asyncpg.QueryCanceledError("canceling statement due to statement timeout"),
        asyncpg.AdminShutdownError("terminating connection"),
        asyncpg.IdleInTransactionSessionTimeoutError("terminating connection due to a timeout"),
        psycopg.errors.IdleInTransactionSessionTimeout("terminating connection due to a timeout"),
        asyncpg.InternalClientError("got result for unknown protocol state"),
    ],
)
def test_what_passes_by_itself_is_unavailability(error: Exception) -> None:
    assert isinstance(translated(error), DatabaseUnavailable)


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.InterfaceError("cannot call Transaction.rollback(): the connection is closed"),
        sa.exc.InterfaceError("SELECT 1", None, Exception("connection is closed")),
        sa.exc.DBAPIError("SELECT 1", None, Exception("gone"), connection_invalidated=True),
    ],
)
def test_a_connection_that_ends_under_the_library_is_unavailability_too(error: Exception) -> None:
    with pytest.raises(DatabaseUnavailable), domain_errors():
        raise error


def test_a_fault_of_ours_stays_one() -> None:
    assert translated(asyncpg.UndefinedTableError("no such table")) is None
    with pytest.raises(sa.exc.ProgrammingError), domain_errors():
        raise sa.exc.ProgrammingError("SELECT 1", None, Exception("no such table"))


async def listen(dsn: str) -> None:
    """Begin to listen, as every process does when it starts."""
    await Listener(dsn, {RUN_QUEUED: lambda _: None}).start()


@pytest.mark.parametrize("parts", [{"username": "nobody-known"}, {"database": "none_such"}])
async def test_a_login_that_is_refused_says_what_to_look_at(
    parts: dict[str, str], database: TestDatabase
) -> None:
    dsn = changed(database, password=WRONG, **parts)
    starts: list[Callable[[], Coroutine[Any, Any, None]]] = [
        lambda: assert_role(replace(database.settings("service"), dsn=dsn), reads_content=True),
        lambda: listen(dsn),
    ]
    for start in starts:
        with pytest.raises(LoginRefused, match=next(iter(parts.values()))) as refused:
            async with asyncio.timeout(PATIENCE):
                await start()
        assert WRONG not in str(refused.value)


async def test_listening_where_nobody_answers_ends_the_start(database: TestDatabase) -> None:
    with pytest.raises(DatabaseUnavailable):
        async with asyncio.timeout(PATIENCE):
            await listen(changed(database, host="127.0.0.1", port=1))


async def test_connections_that_were_ended_are_unavailability_and_then_replaced(
    database: TestDatabase,
    tenants: TenantDatabase,
    dispatch: DispatchDatabase,
    superuser: asyncpg.Connection,
    alice: Principal,
) -> None:
    async def read() -> None:
        async with tenants.reading(alice) as transaction:
            await transaction.scalar(sa.text("SELECT 1"))

    async def reap() -> None:
        await dispatch.reap_expired_leases()

    for use in (read, reap):
        await use()
        await superuser.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        try:
            await use()
        except DatabaseUnavailable:
            await use()


async def test_a_checkpoint_connection_that_was_ended_is_not_given_out(
    database: TestDatabase, superuser: asyncpg.Connection, alice: Principal
) -> None:
    pool = CheckpointPool(database.settings("service"))
    await pool.open()

    async def read() -> None:
        async with pool.transaction(alice.user_id) as cursor:
            await cursor.execute("SELECT 1")

    try:
        await asyncio.gather(*(read() for _ in range(4)))
        await superuser.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        for _ in range(8):
            await read()
    finally:
        await pool.close()


class TestAConnectionThatEndedInThePool:
    async def test_is_replaced_before_anybody_asks_on_it(
        self, tenants: TenantDatabase, alice: Principal, superuser: asyncpg.Connection
    ) -> None:
        async with tenants.reading(alice) as tx:
            ended = await tx.scalar(sa.text("SELECT pg_backend_pid()"))
            pooled = (await tx._connection.get_raw_connection()).driver_connection
        assert pooled is not None
        await superuser.execute("SELECT pg_terminate_backend($1, 5000)", ended)
        while not pooled.is_closed():  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)
        async with tenants.reading(alice) as tx:
            assert await tx.scalar(sa.text("SELECT pg_backend_pid()")) != ended
