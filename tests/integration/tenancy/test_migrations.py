"""Bringing a database to the present schema: alone, twice, at once, and not at all."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from sqlalchemy.exc import DBAPIError

from alembic import command
from tenancy import migrate as migration
from tenancy.migrate import MigrationFailed, RoleDsns, head_revision, migrate
from tenancy.rls import security_statements
from tests.isolation.catalogue import complaints
from tests.support.postgres import PostgresServer
from tests.support.tenancy import PATIENCE, TestDatabase

PROGRAM = """
import json, sys
from tenancy.migrate import RoleDsns, migrate
owner, *roles = json.loads(sys.stdin.readline())
print("ready", flush=True)
sys.stdin.readline()
print(migrate(owner, RoleDsns(*roles)))
"""

SNAPSHOT = """
SELECT
  (SELECT array_agg((c.oid::regclass, c.relkind, c.relowner::regrole, c.relrowsecurity,
                     c.relforcerowsecurity, c.relacl)::text ORDER BY c.oid::regclass::text)
   FROM pg_class c WHERE c.relnamespace::regnamespace::text = ANY($1)) AS classes,
  (SELECT array_agg((a.attrelid::regclass, a.attname, a.atttypid::regtype, a.attnotnull,
                     a.attacl)::text ORDER BY a.attrelid::regclass::text, a.attnum)
   FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
   WHERE c.relnamespace::regnamespace::text = ANY($1)) AS columns,
  (SELECT array_agg((p.oid::regprocedure, p.prosrc, p.prosecdef, p.proacl)::text
                    ORDER BY p.oid::regprocedure::text)
   FROM pg_proc p WHERE p.pronamespace::regnamespace::text = ANY($1)) AS functions,
  (SELECT array_agg((conrelid::regclass, conname, pg_get_constraintdef(oid))::text
                    ORDER BY conrelid::regclass::text, conname)
   FROM pg_constraint WHERE connamespace = 'public'::regnamespace) AS constraints,
  (SELECT array_agg(p::text ORDER BY p::text) FROM pg_policies p) AS policies,
  (SELECT array_agg((nspname, nspowner::regrole, nspacl)::text ORDER BY nspname)
   FROM pg_namespace WHERE nspname = ANY($1)) AS schemas,
  (SELECT datacl::text FROM pg_database WHERE datname = current_database()) AS database
"""
SCHEMAS = ["public", "tenant", "dispatch"]


async def snapshot(database: TestDatabase) -> dict[str, Any]:
    """Everything in the catalogue that a migration decides."""
    connection = await database.connect("owner")
    try:
        return dict(await connection.fetchrow(SNAPSHOT, SCHEMAS))
    finally:
        await connection.close()


async def migrate_at_once(*databases: TestDatabase) -> list[tuple[int, str]]:
    """Migrate in as many processes, all let go at the same moment."""
    processes = []
    for database in databases:
        dsns = database.role_dsns()
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            PROGRAM,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stdin
        told = [database.dsn("owner"), dsns.service, dsns.dispatch, dsns.maintenance]
        process.stdin.write(json.dumps(told).encode() + b"\n")
        processes.append(process)
    for process in processes:
        assert process.stdout
        assert await process.stdout.readline() == b"ready\n"
    ends = await asyncio.gather(*(process.communicate(b"\n") for process in processes))
    return [
        (process.returncode or 0, (out + err).decode())
        for process, (out, err) in zip(processes, ends, strict=True)
    ]


@pytest.fixture
async def newcomers(postgres: PostgresServer) -> AsyncIterator[list[TestDatabase]]:
    """Two empty databases of one server, whose roles do not exist yet."""
    unknown = PostgresServer(postgres.superuser)
    databases = [TestDatabase(unknown, f"stoa_new_{uuid4().hex[:12]}") for _ in range(2)]
    for database in databases:
        await unknown.create_database(database.name)
    try:
        yield databases
    finally:
        for database in databases:
            await unknown.drop_database(database.name)
        await unknown.drop_roles()


class TestTwoMigrationsAtOnce:
    async def test_of_one_database_both_find_it_done(
        self, newcomers: list[TestDatabase], template: TestDatabase
    ) -> None:
        database = newcomers[0]
        ends = await migrate_at_once(database, database, database)
        assert ends == [(0, f"{head_revision()}\n")] * 3
        assert await _shape(database) == await _shape(template)

    async def test_of_two_databases_of_one_server_make_the_roles_once(
        self, newcomers: list[TestDatabase], template: TestDatabase
    ) -> None:
        ends = await migrate_at_once(*newcomers, *newcomers)
        assert ends == [(0, f"{head_revision()}\n")] * 4
        for database in newcomers:
            assert await _shape(database) == await _shape(template)


async def _shape(database: TestDatabase) -> str:
    """A snapshot in which the roles have the names of their duties."""
    text = json.dumps(await snapshot(database), default=str)
    return text.replace(f"_{database.server.suffix}", "")


class TestASecondMigration:
    async def test_changes_nothing(self, newcomers: list[TestDatabase]) -> None:
        (database, _) = newcomers
        await database.migrate()
        before = await snapshot(database)
        assert await database.migrate() == head_revision()
        assert await snapshot(database) == before

    async def test_takes_back_what_was_granted_beside_it(
        self, newcomers: list[TestDatabase]
    ) -> None:
        (database, _) = newcomers
        await database.migrate()
        before = await snapshot(database)
        connection = await database.connect("owner")
        try:
            await connection.execute(
                f'GRANT SELECT (request) ON runs TO "{database.roles().dispatch}";'
                "CREATE POLICY p ON threads USING (true);"
                "ALTER TABLE threads NO FORCE ROW LEVEL SECURITY;"
                "GRANT SELECT ON threads TO PUBLIC;"
                "GRANT EXECUTE ON FUNCTION dispatch.reap_expired_leases() TO PUBLIC"
            )
        finally:
            await connection.close()
        await database.migrate()
        assert await snapshot(database) == before

    async def test_leaves_the_rows_alone(
        self, database: TestDatabase, superuser: asyncpg.Connection
    ) -> None:
        await superuser.execute("INSERT INTO users (user_id) VALUES (gen_random_uuid())")
        await database.migrate()
        assert await superuser.fetchval("SELECT count(*) FROM users") == 1


THE_RECORD_BEFORE = """
    INSERT INTO users (user_id) SELECT gen_random_uuid() FROM generate_series(1, 3);
    INSERT INTO audit (user_id, actor, action, at, arguments_sha256)
      SELECT user_id, 'person', 'decided', now() - interval '1 year', sha256('{}')
      FROM users LIMIT 2;
    INSERT INTO audit_texts (user_id, audit_id, kind, text)
      SELECT user_id, audit_id, 'reason', 'Not now.' FROM audit;
    CREATE FUNCTION tenant.keep_record() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE EXCEPTION 'what is on record stays as it is'; END $$;
    CREATE TRIGGER keep_record BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
      FOR EACH STATEMENT EXECUTE FUNCTION tenant.keep_record();
    CREATE TRIGGER keep_record BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_texts
      FOR EACH STATEMENT EXECUTE FUNCTION tenant.keep_record();
    ALTER TABLE audit ENABLE ALWAYS TRIGGER keep_record, ENABLE ROW LEVEL SECURITY,
      FORCE ROW LEVEL SECURITY;
    ALTER TABLE audit_texts ENABLE ALWAYS TRIGGER keep_record, ENABLE ROW LEVEL SECURITY,
      FORCE ROW LEVEL SECURITY;
    CREATE POLICY own ON audit USING (user_id = (SELECT tenant.user_id()));
    CREATE POLICY own ON audit_texts USING (user_id = (SELECT tenant.user_id()))
"""
"""As a database of the revision before has it, with what keeps it as it is."""


WHO_WORKED_BEFORE = """
    INSERT INTO users (user_id) SELECT gen_random_uuid() FROM generate_series(1, 2);
    INSERT INTO workers (worker_id, host, pid, started_at, lease_until)
      VALUES (gen_random_uuid(), 'h', 1, now() - interval '1 hour', now() + interval '1 hour');
    INSERT INTO connections (user_id, server, state, reason, updated_at)
      SELECT user_id, 'notes', 'unavailable', 'exited', now() - interval '1 day' FROM users;
    UPDATE connections SET enabled = false
      WHERE user_id = (SELECT user_id FROM users ORDER BY user_id LIMIT 1);
    ALTER TABLE workers ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
    ALTER TABLE connections ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY
"""
"""A worker, and two servers that do not work, one of which nobody uses; under what keeps them."""


async def migrate_to(
    revision: str, database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bring an empty database to an earlier revision: its tables alone."""
    upgrade = command.upgrade
    nothing: Any = lambda _: iter(())  # noqa: E731
    with monkeypatch.context() as before:
        before.setattr(command, "upgrade", lambda config, _: upgrade(config, revision))
        before.setattr(migration, "FUNCTIONS", Path("/nonexistent"))
        before.setattr(migration, "security_statements", nothing)
        await database.migrate()


class TestAMigrationUnderWorkersOfBefore:
    async def test_has_them_count_and_knows_what_fails(
        self, empty_database: TestDatabase, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """They never say that they are ready, and are there until they are replaced."""
        await migrate_to("0006", empty_database, monkeypatch)
        owner = await empty_database.connect("owner")
        try:
            await owner.execute(WHO_WORKED_BEFORE)
            await empty_database.migrate()
            assert await owner.fetchval("SELECT bool_and(ready_at = started_at) FROM workers")
            assert await owner.fetchval("SELECT dispatch.has_worker()")
            assert not await owner.fetchval("SELECT dispatch.look_for_workers()")
            rows = await owner.fetch(
                "SELECT failing_since = updated_at AS is_known, failing_reason FROM connections"
                " ORDER BY enabled"
            )
            assert [tuple(row) for row in rows] == [(None, None), (True, "exited")]
            assert await complaints(owner, empty_database.roles()) == []
        finally:
            await owner.close()


class TestAMigrationOfTheRecord:
    async def test_has_it_name_nobody_and_loses_no_word_of_it(
        self, empty_database: TestDatabase, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await migrate_to("0005", empty_database, monkeypatch)
        owner = await empty_database.connect("owner")
        try:
            await owner.execute(THE_RECORD_BEFORE)
            written = await owner.fetch("SELECT user_id, audit_id, at FROM audit ORDER BY audit_id")
            await empty_database.migrate()
            assert written == await owner.fetch(
                "SELECT user_id, audit_id, a.at FROM audit a"
                " JOIN audit_references r USING (reference) ORDER BY audit_id"
            )
            assert written == await owner.fetch(
                "SELECT user_id, audit_id, at FROM audit_texts WHERE text = 'Not now.'"
                " ORDER BY audit_id"
            )
            assert await owner.fetchval(
                "SELECT bool_and(arguments_sha256 = sha256(salt || sha256('{}'))) FROM audit"
                " JOIN audit_references USING (reference)"
            )
            assert await complaints(owner, empty_database.roles()) == []
            # Nor where nobody but the disk's owner looks.
            await owner.execute("CHECKPOINT")
            assert not await owner.fetchval(
                "SELECT bool_or(position(uuid_send(user_id) IN f.bytes) > 0) FROM users,"
                " pg_read_binary_file(pg_relation_filepath('audit')) AS f (bytes)"
            )
        finally:
            await owner.close()


class TestAMigrationThatFails:
    async def test_leaves_a_new_database_as_it_was(
        self, newcomers: list[TestDatabase], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (database, _) = newcomers
        monkeypatch.setattr(migration, "security_statements", lambda _: iter(["SELECT 1/0"]))
        with pytest.raises(DBAPIError):
            await database.migrate()
        after = await snapshot(database)
        assert (after["classes"], after["functions"], after["policies"]) == (None, None, None)
        monkeypatch.undo()
        assert await database.migrate() == head_revision()

    async def test_leaves_the_old_schema_and_its_policies_in_force(
        self, database: TestDatabase, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = await snapshot(database)
        statements = security_statements

        def broken(roles: Any) -> list[str]:
            return [*statements(roles), "ALTER TABLE threads ADD extra int", "SELECT 1/0"]

        monkeypatch.setattr(migration, "security_statements", broken)
        with pytest.raises(DBAPIError):
            await database.migrate()
        after = await snapshot(database)
        # The grants on the database itself come with the roles, before the schema.
        assert {**after, "database": None} == {**before, "database": None}

    async def test_does_not_hold_the_lock_afterwards(
        self, database: TestDatabase, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(migration, "security_statements", lambda _: iter(["SELECT 1/0"]))
        with pytest.raises(DBAPIError):
            await database.migrate()
        monkeypatch.undo()
        async with asyncio.timeout(PATIENCE):
            assert await database.migrate() == head_revision()

    async def test_a_dsn_without_a_role_of_its_own_is_refused(self, template: TestDatabase) -> None:
        dsns = template.role_dsns()
        with pytest.raises(MigrationFailed, match="role of their own"):
            migrate(template.dsn("owner"), RoleDsns(dsns.service, dsns.service, dsns.maintenance))

    async def test_a_role_that_may_too_much_is_refused_and_nobody_loses_anything(
        self, database: TestDatabase
    ) -> None:
        before = await snapshot(database)
        dsns = database.role_dsns()
        with pytest.raises(MigrationFailed, match="may do too much"):
            migrate(
                database.dsn("owner"),
                RoleDsns(database.dsn("owner"), dsns.dispatch, dsns.maintenance),
            )
        assert await snapshot(database) == before

    async def test_a_database_of_a_newer_version_is_left_alone(
        self, database: TestDatabase, superuser: asyncpg.Connection
    ) -> None:
        await superuser.execute("UPDATE alembic_version SET version_num = '9999'")
        before = await snapshot(database)
        with pytest.raises(MigrationFailed, match="newer version"):
            await database.migrate()
        after = await snapshot(database)
        assert {**after, "database": None} == {**before, "database": None}
