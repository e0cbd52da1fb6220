"""Erasing one person takes everything of theirs, nothing of anybody else's, and stays so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID

import asyncpg
import pytest
import sqlalchemy as sa

from tenancy.acts import Act
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.errors import UserUnavailable
from tenancy.oversight.acts import ActDatabase
from tenancy.principal import Principal, UserId
from tenancy.rls import RULES
from tests.integration.tenancy.scenes import make_scene
from tests.support.every_table import fill_every_table
from tests.support.leaving import Leaving, leaving_of
from tests.support.tenancy import TestDatabase, make_thread, queue_run

OF_A_THOUSAND = """
    INSERT INTO users (user_id) SELECT gen_random_uuid() FROM generate_series(1, 999);
    INSERT INTO identities (user_id, identity) SELECT user_id, user_id::text FROM users
      WHERE user_id NOT IN (SELECT user_id FROM identities);
    INSERT INTO threads (user_id, thread_id) SELECT user_id, gen_random_uuid() FROM users
      WHERE user_id NOT IN (SELECT user_id FROM threads);
    INSERT INTO runs (user_id, run_id, thread_id, assistant_id, graph_id, request, due_at,
                      created_at, updated_at)
      SELECT user_id, gen_random_uuid(), thread_id, gen_random_uuid(), 'agent', '{}', now(), now(),
        now()
      FROM threads WHERE user_id NOT IN (SELECT user_id FROM runs);
"""
PERSONAL = [table for table, rules in RULES.items() if rules.personal]
OF_NOBODY = [
    table
    for table, rules in RULES.items()
    if not rules.personal and table not in ("audit", "erasures", "erasure_stops", "tombstones")
]


@pytest.fixture
async def leaving(database: TestDatabase, tenants: TenantDatabase) -> AsyncIterator[Leaving]:
    async with leaving_of(database, tenants) as what:
        yield what


async def rows_of_others(
    superuser: asyncpg.Connection, user_id: UserId, reference: UUID
) -> dict[str, str]:
    """A hash of every row that is not this person's, and of when it was written, by table."""
    hashes = {}
    for table, where in (
        *((table, f"user_id <> '{user_id}'") for table in PERSONAL),
        *((table, "true") for table in OF_NOBODY),
        ("audit", f"reference IS DISTINCT FROM '{reference}'"),
    ):
        hashes[table] = await superuser.fetchval(
            "SELECT concat(count(*), ' ', md5(string_agg(t::text || xmin, '' ORDER BY t::text)))"
            f" FROM {table} t WHERE {where}"
        )
    return hashes


async def rows_of(superuser: asyncpg.Connection, user_id: UserId) -> dict[str, int]:
    return {
        table: count
        for table in PERSONAL
        if (
            count := await superuser.fetchval(
                f"SELECT count(*) FROM {table} WHERE user_id = $1", user_id
            )
        )
    }


class TestErasingOneOfAThousand:
    async def test_takes_all_that_is_theirs_and_changes_no_row_of_the_others(
        self,
        tenants: TenantDatabase,
        superuser: asyncpg.Connection,
        leaving: Leaving,
        alice: Principal,
    ) -> None:
        await queue_run(tenants, alice, await make_thread(tenants, alice))
        await superuser.execute(OF_A_THOUSAND)
        await fill_every_table(superuser)
        assert set(await rows_of(superuser, alice.user_id)) == set(PERSONAL) - {
            "run_attempts",
            "idempotency_keys",
        }
        reference = await superuser.fetchval(
            "SELECT reference FROM audit_references WHERE user_id = $1", alice.user_id
        )
        before = await rows_of_others(superuser, alice.user_id, reference)
        assert before["users"].startswith("999 ")
        await leaving.erase(alice)
        assert await rows_of_others(superuser, alice.user_id, reference) == before
        assert await rows_of(superuser, alice.user_id) == {}

    async def test_reads_no_more_for_each_batch_than_it_deletes(
        self,
        tenants: TenantDatabase,
        database: TestDatabase,
        superuser: asyncpg.Connection,
        leaving: Leaving,
        alice: Principal,
    ) -> None:
        """Even where nearly every row is theirs, and nothing of what went before is cleaned up."""
        run = await queue_run(tenants, alice, await make_thread(tenants, alice))
        await superuser.execute(
            "INSERT INTO run_events (user_id, run_id, seq, event, data)"
            " SELECT $1, $2, n, 'values', '{}' FROM generate_series(1, 2000) n",
            *(alice.user_id, run.run_id),
        )
        await superuser.execute("ANALYZE run_events")
        await leaving.begin(alice)
        service = await database.connect("service")
        read = "SELECT pg_stat_get_xact_tuples_returned($1::text::regclass)"
        try:
            async with service.transaction():
                after = None
                for _ in range(10):
                    batch = await service.fetchrow(
                        "SELECT name, after FROM tenant.erase_rows($1, 100, $2)",
                        *(alice.user_id, after),
                    )
                    assert batch["name"] == "run_events"
                    after = batch["after"]
                assert 1000 <= await service.fetchval(read, "run_events_pkey") <= 2100
                assert await service.fetchval(read, "run_events") == 0
        finally:
            await service.close()


class TestWhatTheServerSaysOfABatchThatFails:
    async def test_has_no_word_of_what_the_person_wrote(
        self, database: TestDatabase, superuser: asyncpg.Connection, alice: Principal
    ) -> None:
        prefix = f"{alice.user_id}.canary"
        await superuser.execute(
            "INSERT INTO store (user_id, prefix, key, value)"
            " SELECT $1, $2, 'canary ' || n, '{}' FROM generate_series(1, 2) n",
            *(alice.user_id, prefix),
        )
        other = await database.connect("owner")
        try:
            async with other.transaction():
                await other.execute("SELECT FROM store FOR UPDATE")
                await superuser.execute("SET lock_timeout = '1ms'")
                with pytest.raises(asyncpg.LockNotAvailableError) as failed:
                    await superuser.fetch(
                        "SELECT tenant.erase_batch($1, 'store', $2, $3, 10)",
                        alice.user_id,
                        ["user_id", "prefix", "key"],
                        [str(alice.user_id), prefix, "canary 1"],
                    )
        finally:
            await superuser.execute("RESET lock_timeout")
            await other.close()
        assert "DELETE FROM public.store" in str(failed.value.context)
        assert "canary" not in str(failed.value.context)


class TestATableThatCameLater:
    async def test_is_emptied_too(
        self,
        tenants: TenantDatabase,
        superuser: asyncpg.Connection,
        database: TestDatabase,
        leaving: Leaving,
        alice: Principal,
        bob: Principal,
    ) -> None:
        service = database.roles().service
        await superuser.execute(
            f"""
            CREATE TABLE notes (user_id uuid REFERENCES users, n int, PRIMARY KEY (user_id, n));
            CREATE TABLE lines (user_id uuid, n int, line int, PRIMARY KEY (user_id, n, line),
              FOREIGN KEY (user_id, n) REFERENCES notes);
            GRANT SELECT, DELETE ON notes, lines TO "{service}";
            GRANT SELECT (user_id) ON notes, lines TO "{database.roles().maintenance}";
            INSERT INTO notes SELECT user_id, 1 FROM users;
            INSERT INTO lines SELECT user_id, 1, 1 FROM users
            """
        )
        await leaving.erase(alice)
        assert await superuser.fetch("SELECT user_id FROM lines") == [(bob.user_id,)]
        assert await superuser.fetch("SELECT user_id FROM notes") == [(bob.user_id,)]


OF_OTHERS = {
    "what a call used that ends late": (
        "dispatch",
        "INSERT INTO usage_hours (user_id, hour, model) VALUES ($1, now(), 'late')",
    ),
    "a run that is put back": ("dispatch", "SELECT tenant.call_up($1)"),
    "an operator who looks": (
        "dispatch",
        "SELECT tenant.audit_act(NULL, 'root', 'looked', 'stoa admin users', $1)",
    ),
}


class TestNothingComesBack:
    @pytest.mark.parametrize("late", OF_OTHERS, ids=list(OF_OTHERS))
    async def test_of_what_others_write_while_the_last_row_goes(
        self,
        late: str,
        database: TestDatabase,
        superuser: asyncpg.Connection,
        leaving: Leaving,
        alice: Principal,
    ) -> None:
        role, statement = OF_OTHERS[late]
        await leaving.begin(alice)
        while await leaving.rows.delete(alice, 100):
            pass
        writer = await database.connect(role)  # type: ignore[arg-type]
        try:
            writing = writer.transaction()
            await writing.start()
            await writer.execute(statement, alice.user_id)
            deleting = asyncio.create_task(leaving.delete(alice))
            await _until_somebody_waits(superuser)
            await writing.commit()
            await deleting
            assert await rows_of(superuser, alice.user_id) == {}
        finally:
            await writer.close()

    async def test_of_what_an_operator_looks_at_all_the_time(
        self,
        database: TestDatabase,
        superuser: asyncpg.Connection,
        leaving: Leaving,
        alice: Principal,
        bob: Principal,
    ) -> None:
        """It is on record, and keeps nobody's last row."""
        job = await leaving.begin(alice)
        await leaving.erasures.advance(job, "delete")
        while await leaving.rows.delete(alice, 100):
            pass
        acts = ActDatabase(database.settings("dispatch"))
        await acts.looked(Act("a look", by=bob.user_id), alice.user_id)
        await acts.refused(Act("a wish", by=alice.user_id))
        await acts.close()
        assert await leaving.rows.delete_user(alice)
        of_whom = await superuser.fetch(
            "SELECT a.reference, r.user_id FROM audit a"
            " JOIN audit_references r ON r.reference = a.by_reference WHERE route IS NOT NULL"
        )
        assert [tuple(each) for each in of_whom] == [(None, bob.user_id)]

    async def test_of_whatever_is_called_for_them_afterwards(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        database: TestDatabase,
        superuser: asyncpg.Connection,
        leaving: Leaving,
        alice: Principal,
    ) -> None:
        """Of every function that there is, as a worker would that has slept through it all."""
        scene = await make_scene("running", tenants, dispatch, superuser, alice)
        await leaving.erase(alice)
        refused = {}
        connections = {role: await database.connect(role) for role in ("service", "dispatch")}
        try:
            for name, call in scene.calls().items():
                connection = connections[call.role]
                try:
                    async with connection.transaction():
                        if call.bound:
                            await connection.execute("SELECT tenant.begin_write($1)", call.bound)
                        await connection.fetch(call.statement, *call.arguments)
                except asyncpg.PostgresError as error:
                    refused[name] = error.sqlstate
        finally:
            for connection in connections.values():
                await connection.close()
        assert await rows_of(superuser, alice.user_id) == {}
        # Nobody runs into a foreign key, which would be a fault to whoever called. One has to be
        # bound first, and one is about an erasure that is not there.
        others = {name: why for name, why in refused.items() if why not in ("ST001", "ST003")}
        assert others == {"begin_growth": "ST002", "record_tombstones": "P0002"}
        assert refused["accept_run enqueue"] == refused["erase_rows"] == "ST003"

    async def test_of_what_the_person_wrote_as_it_began(
        self,
        tenants: TenantDatabase,
        superuser: asyncpg.Connection,
        leaving: Leaving,
        alice: Principal,
    ) -> None:
        async with tenants.writing(alice) as tx:
            await tx.change(
                sa.text(
                    "INSERT INTO threads (user_id, thread_id)"
                    " SELECT tenant.user_id(), gen_random_uuid()"
                )
            )
            erasing = asyncio.create_task(leaving.erase(alice))
            await _until_somebody_waits(superuser)
        await erasing
        assert await rows_of(superuser, alice.user_id) == {}
        with pytest.raises(UserUnavailable):
            await make_thread(tenants, alice)


async def _until_somebody_waits(superuser: asyncpg.Connection) -> None:
    while not await superuser.fetchval(  # noqa: ASYNC110 - the server tells nobody
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        " AND datname = current_database()"
    ):
        await asyncio.sleep(0.005)


class TestSomebodyWhoIsNotLeaving:
    async def test_loses_no_row_to_an_erasure(
        self,
        tenants: TenantDatabase,
        superuser: asyncpg.Connection,
        leaving: Leaving,
        alice: Principal,
        bob: Principal,
    ) -> None:
        await queue_run(tenants, alice, await make_thread(tenants, alice))
        before = await rows_of(superuser, alice.user_id)
        await leaving.begin(bob)
        for delete in (leaving.rows.delete(alice, 1000), leaving.rows.destroy_keys(alice)):
            with pytest.raises(UserUnavailable):
                await delete
        assert not await leaving.rows.delete_user(alice)
        assert await rows_of(superuser, alice.user_id) == before

    async def test_cannot_delete_what_only_an_erasure_deletes(
        self, tenants: TenantDatabase, superuser: asyncpg.Connection, alice: Principal
    ) -> None:
        await queue_run(tenants, alice, await make_thread(tenants, alice))
        await fill_every_table(superuser)
        kept = [
            table
            for table, rules in RULES.items()
            if rules.service and "is_erasing" in rules.service.rows_of("DELETE")
        ]
        assert {"usage_hours", "user_limits", "request_rates", "audit_references"} <= set(kept)
        async with tenants.writing(alice) as tx:
            for table in [*kept, "users"]:
                assert await tx.change(sa.text(f"DELETE FROM {table}")) == 0, table
