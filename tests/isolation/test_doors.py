"""The tenant door: bound to one user, to nobody by accident, and to nobody afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from uuid import uuid4

import asyncpg
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import DBAPIError

from tenancy.checkpoints.pool import CheckpointPool
from tenancy.database.engine import SQLSTATE_NO_TENANT
from tenancy.database.tenant import TenantDatabase
from tenancy.errors import UserUnavailable
from tenancy.principal import Principal, UserId
from tenancy.rls import RULES
from tenancy.tables import threads
from tests.support.every_table import fill_every_table
from tests.support.tenancy import (
    TestDatabase,
    make_thread,
    queue_run,
    set_user_state,
    sign_in,
)

FOR_GOOD = ("audit", "audit_texts")
"""Nobody can delete a row before its time, whatever their rights."""
PERSONAL = [*(table for table, rules in RULES.items() if rules.personal), "audit"]
"""Those of which a person sees their own rows."""
GRANTS = {
    table: rules.service.grants for table, rules in RULES.items() if rules.service is not None
}
UPDATES = {table: next(iter(grants.get("UPDATE", ())), None) for table, grants in GRANTS.items()}
BOUND = sa.text("SELECT current_setting('app.user_id', true)")


def statements(table: str) -> list[str]:
    """Whatever the service's grants let it say to a table."""
    said = [f"SELECT count(*) FROM {table}"]
    if "INSERT" in GRANTS[table]:
        said.append(f"INSERT INTO {table} DEFAULT VALUES")
    if UPDATES[table]:
        said.append(f"UPDATE {table} SET {UPDATES[table]} = NULL")
    if "DELETE" in GRANTS[table]:
        said.append(f"DELETE FROM {table}")
    return said


async def refusal(connection: asyncpg.Connection, statement: str) -> str:
    """The SQLSTATE with which a statement is refused, or an empty string."""
    try:
        async with connection.transaction():
            await connection.execute(statement)
    except asyncpg.PostgresError as error:
        return str(error.sqlstate)
    return ""


class TestWithoutAUser:
    @pytest.fixture
    async def service(
        self, database: TestDatabase, tenants: TenantDatabase, alice: Principal
    ) -> AsyncIterator[asyncpg.Connection]:
        await queue_run(tenants, alice, await make_thread(tenants, alice))
        connection = await database.connect("service")
        yield connection
        await connection.close()

    async def test_every_statement_on_every_personal_table_is_an_error(
        self, service: asyncpg.Connection, superuser: asyncpg.Connection
    ) -> None:
        await fill_every_table(superuser)
        for table in PERSONAL:
            for statement in statements(table):
                assert await refusal(service, statement) == SQLSTATE_NO_TENANT, statement

    async def test_so_it_is_after_the_connection_was_somebodys(
        self, service: asyncpg.Connection, superuser: asyncpg.Connection, alice: Principal
    ) -> None:
        await fill_every_table(superuser)
        async with service.transaction():
            await service.execute("SELECT tenant.begin_write($1)", alice.user_id)
            assert await service.fetchval("SELECT count(*) FROM threads") == 1
        assert await service.fetchval("SELECT current_setting('app.user_id', true)") == ""
        for table in PERSONAL:
            for statement in statements(table):
                assert await refusal(service, statement) == SQLSTATE_NO_TENANT, statement


class TestOneConnectionForAll:
    """A pool of one: whatever the last one did, the next one sees only what is theirs."""

    @pytest.fixture
    async def tenants(self, database: TestDatabase) -> AsyncIterator[TenantDatabase]:
        door = TenantDatabase(database.settings("service", pool_size=1))
        yield door
        await door.close()

    async def titles(self, tenants: TenantDatabase, person: Principal) -> Sequence[str]:
        async with tenants.reading(person) as tx:
            return [row.title for row in await tx.all(sa.select(threads.c.title))]

    async def write(self, tenants: TenantDatabase, person: Principal, title: str) -> None:
        async with tenants.writing(person) as tx:
            await tx.change(
                sa.insert(threads).values(
                    user_id=person.user_id, thread_id=uuid4(), title=title, metadata={}
                )
            )

    async def test_after_a_success(
        self, tenants: TenantDatabase, alice: Principal, bob: Principal
    ) -> None:
        await self.write(tenants, alice, "alice's")
        assert await self.titles(tenants, bob) == []
        assert await self.titles(tenants, alice) == ["alice's"]

    async def test_after_an_exception_nothing_is_left(
        self, tenants: TenantDatabase, alice: Principal, bob: Principal
    ) -> None:
        with pytest.raises(ZeroDivisionError):  # noqa: PT012 - what is done before it matters
            async with tenants.writing(alice) as tx:
                await tx.change(
                    sa.insert(threads).values(
                        user_id=alice.user_id, thread_id=uuid4(), title="lost", metadata={}
                    )
                )
                raise ZeroDivisionError
        assert await self.titles(tenants, bob) == []
        assert await self.titles(tenants, alice) == []

    async def test_after_a_refused_statement(
        self, tenants: TenantDatabase, alice: Principal, bob: Principal
    ) -> None:
        with pytest.raises(DBAPIError):
            async with tenants.writing(alice) as tx:
                await tx.all(sa.text("SELECT 1/0"))
        assert await self.titles(tenants, bob) == []

    async def test_after_a_cancellation_in_mid_statement(
        self,
        tenants: TenantDatabase,
        alice: Principal,
        bob: Principal,
        superuser: asyncpg.Connection,
    ) -> None:
        async def write_and_sleep() -> None:
            async with tenants.writing(alice) as tx:
                await tx.change(
                    sa.insert(threads).values(
                        user_id=alice.user_id, thread_id=uuid4(), title="lost", metadata={}
                    )
                )
                await tx.all(sa.text("SELECT pg_sleep(60)"))

        sleeping = asyncio.create_task(write_and_sleep())
        await _until_asleep(superuser)
        sleeping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sleeping
        assert await self.titles(tenants, bob) == []
        assert await self.titles(tenants, alice) == []

    async def test_a_cancelled_call_of_a_function_leaves_nothing_either(
        self,
        tenants: TenantDatabase,
        alice: Principal,
        bob: Principal,
        superuser: asyncpg.Connection,
    ) -> None:
        bind = "SELECT current_setting('app.user_id', true) AS bound"
        writing = """
            WITH bound AS MATERIALIZED (SELECT tenant.begin_write($1)),
                 made AS (INSERT INTO threads (user_id, thread_id, title)
                          SELECT $1, gen_random_uuid(), 'lost' FROM bound RETURNING 1)
            SELECT pg_sleep(60) FROM made
        """
        sleeping = asyncio.create_task(tenants.call(alice, writing))
        await _until_asleep(superuser)
        sleeping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sleeping
        (row,) = await tenants._calls.fetch(bind)
        assert not row["bound"]
        count = "SELECT count(*) AS n FROM tenant.begin_read($1), threads"
        assert [row["n"] for row in await tenants.call(bob, count)] == [0]
        assert await superuser.fetchval("SELECT count(*) FROM threads") == 0

    async def test_the_binding_ends_with_the_transaction(
        self, tenants: TenantDatabase, alice: Principal
    ) -> None:
        async with tenants.reading(alice) as tx:
            assert await tx.scalar(BOUND) == str(alice.user_id)
        async with tenants._engine.connect() as connection:
            assert (await connection.execute(BOUND)).scalar() == ""

    async def test_a_cancelled_checkpoint_transaction_leaves_nothing_either(
        self,
        database: TestDatabase,
        alice: Principal,
        bob: Principal,
        superuser: asyncpg.Connection,
    ) -> None:
        pool = CheckpointPool(database.settings("service", pool_size=1))
        await pool.open()
        try:

            async def write_and_wait() -> None:
                async with pool.transaction(alice.user_id, write=True) as cursor:
                    await cursor.execute(
                        "INSERT INTO threads (user_id, thread_id, title) VALUES (%s, %s, 'lost')",
                        (alice.user_id, uuid4()),
                    )
                    await cursor.execute("SELECT pg_sleep(60)")
                    await cursor.fetchall()

            writing = asyncio.create_task(write_and_wait())
            await _until_asleep(superuser)
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
            for person in (bob, alice):
                async with pool.transaction(person.user_id) as cursor:
                    await cursor.execute("SELECT count(*) AS n FROM threads")
                    assert (await cursor.fetchone()) == {"n": 0}
        finally:
            await pool.close()


class TestAReadingTransaction:
    async def test_cannot_write(self, tenants: TenantDatabase, alice: Principal) -> None:
        """Else somebody who is being erased could be written for without holding their row."""
        thread_id = await make_thread(tenants, alice)
        with pytest.raises(DBAPIError, match="read-only transaction"):
            async with tenants.reading(alice) as tx:
                await tx.all(sa.delete(threads).where(threads.c.thread_id == thread_id))


class TestAUserWhoIsNotActive:
    @pytest.mark.parametrize("state", ["suspended", "erasing"])
    async def test_is_not_written_for(
        self,
        state: str,
        tenants: TenantDatabase,
        checkpoints: CheckpointPool,
        superuser: asyncpg.Connection,
        alice: Principal,
        bob: Principal,
    ) -> None:
        await set_user_state(superuser, alice.user_id, state)
        with pytest.raises(UserUnavailable):
            await make_thread(tenants, alice)
        with pytest.raises(UserUnavailable):
            async with checkpoints.transaction(alice.user_id, write=True):
                pass
        await make_thread(tenants, bob)

    async def test_nor_is_one_who_never_was(self, tenants: TenantDatabase) -> None:
        nobody = Principal(UserId(uuid4()), None)  # type: ignore[arg-type]
        with pytest.raises(UserUnavailable):
            await make_thread(tenants, nobody)

    async def test_a_tombstone_waits_for_writes_under_way_and_refuses_later_ones(
        self, database: TestDatabase, tenants: TenantDatabase, alice: Principal
    ) -> None:
        erasing = await database.connect("owner")
        try:
            async with tenants.writing(alice) as tx:
                tombstone = asyncio.create_task(
                    set_user_state_under_lock(erasing, alice.user_id, "erasing")
                )
                await _until_blocked(database, erasing)
                await tx.scalar(sa.select(sa.func.count()).select_from(threads))
                assert not tombstone.done()
            await tombstone
            with pytest.raises(UserUnavailable):
                await make_thread(tenants, alice)
        finally:
            await erasing.close()

    async def test_a_write_that_meets_a_tombstone_being_set_waits_and_is_refused(
        self, database: TestDatabase, tenants: TenantDatabase, alice: Principal
    ) -> None:
        erasing = await database.connect("owner")
        try:
            change = erasing.transaction()
            await change.start()
            hold = "SELECT 1 FROM users WHERE user_id = $1 FOR UPDATE"
            await erasing.execute(hold, alice.user_id)
            late = asyncio.create_task(make_thread(tenants, alice))
            await _until_blocked(database, None)
            await set_user_state(erasing, alice.user_id, "erasing")
            await change.commit()
            with pytest.raises(UserUnavailable):
                await late
            assert await erasing.fetchval("SELECT count(*) FROM threads") == 0
        finally:
            await erasing.close()


async def set_user_state_under_lock(
    connection: asyncpg.Connection, user_id: UserId, state: str
) -> None:
    async with connection.transaction():
        await connection.execute("SELECT 1 FROM users WHERE user_id = $1 FOR UPDATE", user_id)
        await set_user_state(connection, user_id, state)


async def _until_asleep(looking: asyncpg.Connection) -> None:
    """Until a session of this database is in the middle of ``pg_sleep``."""
    while not await looking.fetchval(  # noqa: ASYNC110 - the server tells nobody
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
        " AND datname = current_database()"
    ):
        await asyncio.sleep(0.01)


async def _until_blocked(database: TestDatabase, waiting: asyncpg.Connection | None) -> None:
    """Until a session of this database (that one, if given) waits for another's lock."""
    looking = await database.connect("owner")
    pid = waiting.get_server_pid() if waiting else None
    try:
        while not await looking.fetchval(  # noqa: ASYNC110 - the server tells nobody
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            " AND datname = current_database() AND ($1::int IS NULL OR pid = $1)",
            pid,
        ):
            await asyncio.sleep(0.01)
    finally:
        await looking.close()


class TestSomebodyElsesRows:
    async def test_cannot_be_written_in_their_name(
        self, tenants: TenantDatabase, alice: Principal, bob: Principal
    ) -> None:
        with pytest.raises(DBAPIError, match="row-level security"):
            async with tenants.writing(bob) as tx:
                await tx.change(
                    sa.insert(threads).values(user_id=alice.user_id, thread_id=uuid4(), metadata={})
                )

    async def test_cannot_be_given_to_somebody(
        self, tenants: TenantDatabase, alice: Principal, bob: Principal
    ) -> None:
        await make_thread(tenants, bob)
        with pytest.raises(DBAPIError, match=r"permission denied|row-level security"):
            async with tenants.writing(bob) as tx:
                await tx.change(sa.update(threads).values(user_id=alice.user_id))

    async def test_are_untouched_by_updates_and_deletes(
        self,
        tenants: TenantDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        bob: Principal,
    ) -> None:
        await queue_run(tenants, alice, await make_thread(tenants, alice))
        await fill_every_table(superuser)
        others = [table for table in PERSONAL if table not in ("users", "identities")]
        for table in reversed([table for table in others if table not in FOR_GOOD]):
            await superuser.execute(f"DELETE FROM {table} WHERE user_id = $1", bob.user_id)
        before = {table: await superuser.fetch(f"SELECT * FROM {table}") for table in others}
        assert all(before[table] for table in set(others) - {"run_attempts", "idempotency_keys"})
        hers = sa.bindparam("alice", alice.user_id, postgresql.UUID)
        async with tenants.writing(bob) as tx:
            for table in others:
                assert await tx.scalar(sa.text(f"SELECT count(*) FROM {table}")) == 0, table
                update = f"UPDATE {table} SET {UPDATES[table]} = {UPDATES[table]}"
                if UPDATES[table]:
                    assert await tx.change(sa.text(update)) == 0, table
                if "DELETE" in GRANTS[table]:
                    assert await tx.change(sa.text(f"DELETE FROM {table}")) == 0, table
                    where = sa.text(f"DELETE FROM {table} WHERE user_id = :alice").bindparams(hers)
                    assert await tx.change(where) == 0, table
        for table, rows in before.items():
            assert await superuser.fetch(f"SELECT * FROM {table}") == rows, table

    async def test_cannot_be_referenced(
        self, tenants: TenantDatabase, alice: Principal, bob: Principal
    ) -> None:
        """A foreign key ignores row security: were it not composite, Bob would learn of it."""
        thread_id = await make_thread(tenants, alice)
        unknown = uuid4()
        said = []
        for target in (thread_id, unknown):
            with pytest.raises(DBAPIError, match="foreign key") as refused:
                async with tenants.writing(bob) as tx:
                    await tx.change(
                        sa.text(
                            "INSERT INTO checkpoints (thread_id, checkpoint_id, checkpoint)"
                            " VALUES (:thread, 'c', '{}')"
                        ).bindparams(sa.bindparam("thread", target, postgresql.UUID))
                    )
            said.append(str(refused.value).replace(str(target), "…"))
        assert said[0] == said[1]
        async with tenants.writing(alice) as tx:
            assert await tx.change(sa.delete(threads)) == 1


class TestPeople:
    async def test_see_their_own_row_only(
        self, tenants: TenantDatabase, alice: Principal, bob: Principal
    ) -> None:
        await sign_in(tenants, "carol")
        async with tenants.reading(bob) as tx:
            assert await tx.scalar(sa.text("SELECT array_agg(name) FROM users")) == ["Bob"]
