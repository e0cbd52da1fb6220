"""From identities to users: one each, random, and agreed upon by everybody at once."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace

import asyncpg

from tenancy.database.tenant import TenantDatabase
from tenancy.identity.directory import UserDirectory
from tests.support.tenancy import TestDatabase, identity

PROGRAM = """
import asyncio, json, sys
from datetime import UTC, datetime
from tenancy.database.engine import DatabaseSettings
from tenancy.database.tenant import TenantDatabase
from tenancy.identity.directory import UserDirectory
from tenancy.principal import Identity

async def main():
    tenants = TenantDatabase(DatabaseSettings(sys.argv[1]))
    print("ready", flush=True)
    sys.stdin.readline()
    people = [Identity("https://issuer.test", f"subject {n}", datetime.now(UTC)) for n in range(10)]
    found = await asyncio.gather(*(UserDirectory(tenants).principal(p) for p in people * 2))
    print(json.dumps([str(principal.user_id) for principal in found]))
    await tenants.close()

asyncio.run(main())
"""


class TestAFirstRequest:
    async def test_of_one_person_in_many_processes_makes_one_user(
        self, database: TestDatabase, superuser: asyncpg.Connection
    ) -> None:
        processes = [
            await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                PROGRAM,
                database.dsn("service"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            for _ in range(3)
        ]
        for process in processes:
            assert process.stdout
            assert await process.stdout.readline() == b"ready\n"
        said = await asyncio.gather(*(process.communicate(b"\n") for process in processes))
        found = [json.loads(out) for out, _ in said]
        assert found[0] == found[1] == found[2]
        assert found[0][:10] == found[0][10:]
        assert len(set(found[0])) == 10
        assert await superuser.fetchval("SELECT count(*) FROM users") == 10
        assert await superuser.fetchval("SELECT count(*) FROM identities") == 10

    async def test_makes_a_random_user(self, tenants: TenantDatabase) -> None:
        principal = await UserDirectory(tenants).principal(identity("alice"))
        assert principal.user_id.version == 4


class TestTheSameSubject:
    async def test_of_another_issuer_is_another_person(self, tenants: TenantDatabase) -> None:
        directory = UserDirectory(tenants)
        one = await directory.principal(identity("alice", "https://one.test"))
        two = await directory.principal(identity("alice", "https://two.test"))
        assert one.user_id != two.user_id

    async def test_is_the_same_person_next_time_and_in_another_process(
        self, tenants: TenantDatabase
    ) -> None:
        first = await UserDirectory(tenants).principal(identity("alice"))
        again = await UserDirectory(tenants).principal(identity("alice"))
        assert first.user_id == again.user_id


class TestNameAndMail:
    async def test_follow_the_assertion(
        self, tenants: TenantDatabase, superuser: asyncpg.Connection
    ) -> None:
        directory = UserDirectory(tenants)
        said = replace(identity("alice"), name="Alice", email="a@example.org")
        user_id = (await directory.principal(said)).user_id
        changed = replace(said, name="Alice B.", email=None)
        assert (await directory.principal(changed)).user_id == user_id
        row = await superuser.fetchrow("SELECT name, email FROM users")
        assert tuple(row) == ("Alice B.", None)

    async def test_that_are_the_same_write_nothing(
        self, tenants: TenantDatabase, superuser: asyncpg.Connection
    ) -> None:
        await UserDirectory(tenants).principal(identity("alice"))
        before = await superuser.fetchval("SELECT xmin::text FROM users")
        await UserDirectory(tenants).principal(identity("alice"))
        assert await superuser.fetchval("SELECT xmin::text FROM users") == before
