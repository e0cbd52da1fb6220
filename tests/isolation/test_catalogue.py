"""What the database's catalogue says is what ``tenancy.rls`` declares, nothing less or more."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.isolation.catalogue import complaints
from tests.support.tenancy import TestDatabase


@pytest.fixture
async def catalogue(template: TestDatabase) -> AsyncIterator[asyncpg.Connection]:
    """The migrated database itself: a copy has no grants on the database. Changes are undone."""
    connection = await template.connect("owner")
    change = connection.transaction()
    await change.start()
    try:
        yield connection
    finally:
        await change.rollback()
        await connection.close()


class TestAMigratedDatabase:
    async def test_is_exactly_as_declared(
        self, template: TestDatabase, catalogue: asyncpg.Connection
    ) -> None:
        assert await complaints(catalogue, template.roles()) == []


FAULTS = {
    "a table of a person's without row security": (
        "CREATE TABLE notes (user_id uuid REFERENCES users, n int, PRIMARY KEY (user_id, n))",
        "notes: row security is not enabled and forced",
    ),
    "a table that nobody declared": ("CREATE TABLE notes (n int)", "notes: not declared"),
    "a table without a way to users": (
        "CREATE TABLE notes (user_id uuid PRIMARY KEY)",
        "notes: no path of foreign keys to users",
    ),
    "a primary key that begins elsewhere": (
        "CREATE TABLE notes (user_id uuid REFERENCES users, n int, PRIMARY KEY (n, user_id))",
        "notes: the primary key begins with n",
    ),
    "a foreign key without the user": (
        (
            "ALTER TABLE threads ADD UNIQUE (thread_id);"
            "ALTER TABLE run_events ADD thread_id uuid REFERENCES threads (thread_id)"
        ),
        "run_events -> threads: the foreign key does not begin with user_id",
    ),
    "a table that keeps a person's row without being theirs": (
        "CREATE TABLE notes (author uuid REFERENCES users)",
        "notes -> users: what is nobody's would keep somebody's row",
    ),
    "a foreign key that no index finds": (
        "DROP INDEX runs_in_thread",
        "runs -> threads: no index begins with user_id, thread_id",
    ),
    "a table that an erasure cannot empty": (
        'REVOKE DELETE ON threads FROM "{service}"',
        "threads: an erasure cannot delete its rows",
    ),
    "a table whose rows cannot be counted": (
        'REVOKE SELECT (user_id) ON threads FROM "{maintenance}"',
        "threads: nobody can count a person's rows",
    ),
    "row security that is not forced": (
        "ALTER TABLE threads NO FORCE ROW LEVEL SECURITY",
        "threads: row security is not enabled and forced",
    ),
    "row security that is off": (
        "ALTER TABLE store DISABLE ROW LEVEL SECURITY",
        "store: row security is not enabled and forced",
    ),
    "a policy that lets everybody in": (
        "CREATE POLICY p ON threads USING (true)",
        "policy not declared: ('threads'",
    ),
    "a policy that was widened": (
        'ALTER POLICY "{service}_select" ON threads USING (true)',
        "policy not declared: ('threads'",
    ),
    "a policy that is gone": (
        'DROP POLICY "{service}_select" ON threads',
        "policy missing: ('threads'",
    ),
    "a column granted to dispatch": (
        'GRANT SELECT (request) ON runs TO "{dispatch}"',
        "grant too many: ('runs', 'request'",
    ),
    "a grant to everybody": (
        "GRANT SELECT ON workers TO PUBLIC",
        "grant too many: ('workers', '', 'PUBLIC', 'SELECT')",
    ),
    "TRUNCATE for the service": (
        'GRANT TRUNCATE ON threads TO "{service}"',
        "grant too many: ('threads', ''",
    ),
    "a grant that is gone": (
        'REVOKE DELETE ON threads FROM "{service}"',
        "grant missing: ('threads', ''",
    ),
    "a schema in which the service can create": (
        'GRANT CREATE ON SCHEMA public TO "{service}"',
        "schema grant missing or too many: ('public'",
    ),
    "temporary tables for everybody": (
        'GRANT TEMPORARY ON DATABASE "{name}" TO PUBLIC',
        "schema grant missing or too many: ('the database', 'PUBLIC', 'TEMPORARY')",
    ),
    "a view with its owner's rights": (
        "CREATE VIEW every_thread AS SELECT * FROM threads",
        "every_thread: a view without security_invoker",
    ),
    "a materialised view": (
        "CREATE MATERIALIZED VIEW every_thread AS SELECT * FROM threads",
        "every_thread: a materialised view",
    ),
    "a definer function": (
        (
            "CREATE FUNCTION tenant.peek() RETURNS bigint LANGUAGE sql SECURITY DEFINER"
            " AS 'SELECT count(*) FROM public.threads'"
        ),
        "tenant.peek(): a definer function",
    ),
    "a function that everybody may call": (
        "GRANT EXECUTE ON FUNCTION dispatch.reap_expired_leases() TO PUBLIC",
        "dispatch.reap_expired_leases(): may be called by ['PUBLIC'",
    ),
    "an owner that can log in": ("ALTER ROLE stoa_owner LOGIN", "stoa_owner: rolcanlogin"),
    "a role that is a member of the owner": (
        'GRANT stoa_owner TO "{service}"',
        ": member",
    ),
}


class TestTheWalkNotices:
    @pytest.mark.parametrize(("fault", "complaint"), FAULTS.values(), ids=FAULTS)
    async def test_a_fault(
        self, fault: str, complaint: str, template: TestDatabase, catalogue: asyncpg.Connection
    ) -> None:
        roles = template.roles()
        for statement in fault.split(";"):
            await catalogue.execute(
                statement.format(
                    service=roles.service,
                    dispatch=roles.dispatch,
                    maintenance=roles.maintenance,
                    name=template.name,
                )
            )
        found = await complaints(catalogue, roles)
        assert [line for line in found if complaint in line], found
