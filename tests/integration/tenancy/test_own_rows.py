"""A person's rows, table by table: each once, none missing, and no more at once than is said."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from tenancy.database.tenant import TenantDatabase
from tenancy.errors import TooManyExports, UserUnavailable
from tenancy.export.rows import OwnRows
from tenancy.principal import Principal
from tests.support.every_table import fill_every_table
from tests.support.tenancy import TestDatabase, make_thread, queue_run, set_user_state

ADD = "INSERT INTO threads (user_id, thread_id, title) VALUES ($1, $2, $3)"
LOG = "INSERT INTO run_events (user_id, run_id, seq, event, data) VALUES ($1, $2, $3, 'e', $4)"


@pytest.fixture
def own(tenants: TenantDatabase) -> OwnRows:
    return OwnRows(tenants)


async def rows_of(own: OwnRows, person: Principal, table: str) -> list[Any]:
    return [
        json.loads(line)
        async for piece in own.pieces(person, table)
        for line in piece.lines.splitlines()
    ]


async def log(
    tenants: TenantDatabase, superuser: asyncpg.Connection, person: Principal, *data: bytes
) -> UUID:
    """A run with these events."""
    run = await queue_run(tenants, person, await make_thread(tenants, person))
    await superuser.executemany(
        LOG, [(person.user_id, run.run_id, seq, each) for seq, each in enumerate(data, 1)]
    )
    return run.run_id


class TestRows:
    async def test_are_ones_own_in_every_table(
        self, own: OwnRows, tenants: TenantDatabase, alice: Principal, bob: Principal
    ) -> None:
        mine, his = [await make_thread(tenants, person) for person in (alice, bob)]
        await own.begin(alice)
        assert [row["thread_id"] for row in await rows_of(own, alice, "threads")] == [str(mine)]
        for table in await own.tables(alice):
            said = json.dumps(await rows_of(own, alice, table))
            assert str(bob.user_id) not in said
            assert str(his) not in said
        (acted,) = await rows_of(own, alice, "audit")
        (whose,) = await rows_of(own, alice, "audit_references")
        assert (acted["action"], acted["reference"]) == ("exported", whose["reference"])
        assert await rows_of(own, bob, "audit") == []

    async def test_are_as_many_as_the_database_has_in_every_table(
        self,
        own: OwnRows,
        tenants: TenantDatabase,
        alice: Principal,
        bob: Principal,
        superuser: asyncpg.Connection,
    ) -> None:
        for person in (alice, alice, bob):
            await queue_run(tenants, person, await make_thread(tenants, person))
        await fill_every_table(superuser)
        await superuser.execute(
            "INSERT INTO idempotency_keys (user_id, route, key, fingerprint, resource_id)"
            " SELECT user_id, 'r', 'k', '', gen_random_uuid() FROM users;"
            "INSERT INTO run_attempts (user_id, run_id, fence, attempt, worker_id, claimed_at)"
            " SELECT user_id, run_id, 1, 1, gen_random_uuid(), now() FROM runs"
        )
        for table in await own.tables(alice):
            by = "user_id"
            if table == "audit":
                by = "(SELECT r.user_id FROM audit_references r WHERE r.reference = o.reference)"
            there = await superuser.fetchval(
                f"SELECT count(*) FROM {table} o WHERE {by} = $1", alice.user_id
            )
            found = sum([piece.rows async for piece in own.pieces(alice, table, rows=1)])
            assert (found, found > 0) == (there, True), table

    async def test_come_once_each_whatever_is_written_meanwhile(
        self, own: OwnRows, alice: Principal, superuser: asyncpg.Connection
    ) -> None:
        """Rows are added before the key, behind it and at it, one is changed and one deleted."""
        there = [UUID(int=number * 10) for number in range(1, 21)]
        for each in there:
            await superuser.execute(ADD, alice.user_id, each, "was there")
        seen: list[UUID] = []
        async for piece in own.pieces(alice, "threads", rows=3):
            seen += [UUID(json.loads(line)["thread_id"]) for line in piece.lines.splitlines()]
            last = seen[-1].int
            for number in {last - 5, last + 5} if last < 200 else ():
                await superuser.execute(ADD, alice.user_id, UUID(int=number), "came")
            await superuser.execute("UPDATE threads SET title = 'changed'")
            await superuser.execute("DELETE FROM threads WHERE thread_id = $1", UUID(int=last))
        assert len(seen) == len(set(seen))
        assert set(there) <= set(seen)

    async def test_of_any_key_go_on_after_it(
        self,
        own: OwnRows,
        tenants: TenantDatabase,
        alice: Principal,
        superuser: asyncpg.Connection,
    ) -> None:
        """Keys of bytes, of times, of texts that sort as people do, and of several columns."""
        await superuser.execute(
            "INSERT INTO connections (user_id, server) VALUES ($1, 's')", alice.user_id
        )
        await superuser.executemany(
            "INSERT INTO authorizations (user_id, state_hash, server, sealed, expires_at)"
            " VALUES ($1, $2, 's', '', now())",
            [(alice.user_id, bytes([n, 10, 92])) for n in range(5)],
        )
        await superuser.executemany(
            "INSERT INTO usage_hours (user_id, hour, model)"
            " VALUES ($1, '2026-03-29 00:00:00.123456+00'::timestamptz + $2 * interval '1 s', $3)",
            [(alice.user_id, n // 2, "aB"[n % 2]) for n in range(6)],
        )
        thread = await make_thread(tenants, alice)
        await superuser.executemany(
            "INSERT INTO checkpoint_writes"
            " (user_id, thread_id, checkpoint_id, task_id, idx, channel, blob)"
            " VALUES ($1, $2, $3, $4, $5, 'c', '')",
            [(alice.user_id, thread, c, t, n) for c in "Ab" for t in "é'\"" for n in (-1, 0)],
        )
        for table, number in (("authorizations", 5), ("usage_hours", 6), ("checkpoint_writes", 12)):
            pieces = [piece async for piece in own.pieces(alice, table, rows=2)]
            lines = [line for piece in pieces for line in piece.lines.splitlines()]
            assert (len(lines), len(set(lines))) == (number, number), table
            assert [piece.rows for piece in pieces[:-1]] == [2] * (len(pieces) - 1)

    async def test_that_are_large_come_one_by_one(
        self,
        own: OwnRows,
        tenants: TenantDatabase,
        alice: Principal,
        superuser: asyncpg.Connection,
    ) -> None:
        large = b'"' + b"x" * 3_000_000 + b'"'
        await log(tenants, superuser, alice, *[b"1"] * 5, large, large, b"2")
        pieces = [piece async for piece in own.pieces(alice, "run_events", size=1_000_000)]
        assert [piece.rows for piece in pieces] == [6, 1, 1]


class TestATable:
    async def test_that_comes_later_is_taken_along_without_being_named_anywhere(
        self,
        own: OwnRows,
        database: TestDatabase,
        alice: Principal,
        superuser: asyncpg.Connection,
    ) -> None:
        service = database.roles().service
        await superuser.execute(
            f"""
            CREATE TABLE "Next year's" (
              user_id uuid REFERENCES users, "the key" text, said jsonb,
              PRIMARY KEY (user_id, "the key")
            );
            ALTER TABLE "Next year's" ENABLE ROW LEVEL SECURITY;
            CREATE POLICY own ON "Next year's" TO "{service}" USING (user_id = tenant.user_id());
            GRANT SELECT ON "Next year's" TO "{service}";
            """
        )
        await superuser.executemany(
            """INSERT INTO "Next year's" VALUES ($1, $2, '{"a": [1]}')""",
            [(alice.user_id, key) for key in ("one", "two", "ö\n'")],
        )
        assert "Next year's" in await own.tables(alice)
        pieces = [piece async for piece in own.pieces(alice, "Next year's", rows=2)]
        assert [piece.rows for piece in pieces] == [2, 1]
        (size,) = (s for s in await own.sizes(alice, most_rows=10) if s.table == "Next year's")
        assert (size.rows, size.is_whole) == (3, True)


class TestAPiece:
    async def test_is_found_without_reading_those_before_it(
        self,
        database: TestDatabase,
        tenants: TenantDatabase,
        alice: Principal,
        superuser: asyncpg.Connection,
    ) -> None:
        run = await log(tenants, superuser, alice, b"1")
        await superuser.execute(
            "INSERT INTO run_events (user_id, run_id, seq, event, data)"
            " SELECT $1, $2, n, 'e', '1' FROM generate_series(2, 30000) n",
            *(alice.user_id, run),
        )
        await superuser.execute("ANALYZE run_events")
        service = await database.connect("service")
        try:
            async with service.transaction():
                await service.execute("SELECT tenant.begin_read($1)", alice.user_id)
                query = await service.fetchval(
                    "SELECT tenant.reading_of('run_events', '{}', '{data}')"
                )
                (told,) = json.loads(
                    await service.fetchval(
                        "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "
                        + query.replace("$1", "($1::text[])"),
                        *([str(alice.user_id), str(run), "29000"], 100),
                    )
                )
        finally:
            await service.close()
        plan = told["Plan"]
        assert plan["Actual Rows"] == 100
        assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 50

    async def test_is_the_last_where_a_person_has_one_row(
        self, own: OwnRows, alice: Principal
    ) -> None:
        pieces = [piece async for piece in own.pieces(alice, "users", rows=1)]
        assert [piece.rows for piece in pieces] == [1]


class TestAColumn:
    async def test_of_json_is_json_and_of_other_bytes_base64(
        self,
        own: OwnRows,
        tenants: TenantDatabase,
        alice: Principal,
        superuser: asyncpg.Connection,
    ) -> None:
        said = b'{"a": "\\u0000 \\ud800 \xc3\xa9",\r\n "b": 123456789012345678901234567890.10}'
        await log(tenants, superuser, alice, said)
        thread = await make_thread(tenants, alice)
        await superuser.execute(
            "INSERT INTO checkpoint_blobs (user_id, thread_id, channel, version, type, blob)"
            " VALUES ($1, $2, 'c', '1', 'msgpack', $3)",
            *(alice.user_id, thread, bytes(range(100))),
        )
        lines = [piece.lines async for piece in own.pieces(alice, "run_events")]
        assert b"123456789012345678901234567890.10" in lines[0]
        assert lines[0].count(b"\n") == 1
        (event,) = await rows_of(own, alice, "run_events")
        assert event["data"]["a"] == "\0 \ud800 é"
        (blob,) = await rows_of(own, alice, "checkpoint_blobs")
        assert blob["blob"].startswith("AAECAwQF")
        assert "\n" not in blob["blob"]

    async def test_that_is_secret_is_not_read(
        self, own: OwnRows, alice: Principal, superuser: asyncpg.Connection
    ) -> None:
        await superuser.execute(
            "INSERT INTO connections (user_id, server, credential, credential_kind)"
            " VALUES ($1, 's', 'canary', 'key')",
            alice.user_id,
        )
        (row,) = await rows_of(own, alice, "connections")
        assert "credential" not in row
        assert row["credential_kind"] == "key"

    async def test_says_no_times_but_in_utc(self, own: OwnRows, alice: Principal) -> None:
        (row,) = await rows_of(own, alice, "users")
        assert row["created_at"].endswith("+00:00")


class TestWhoMayRead:
    async def test_is_a_suspended_person_too(
        self, own: OwnRows, alice: Principal, superuser: asyncpg.Connection
    ) -> None:
        await set_user_state(superuser, alice.user_id, "suspended")
        await own.begin(alice)
        assert len(await rows_of(own, alice, "users")) == 1

    async def test_is_nobody_who_is_being_erased(
        self,
        own: OwnRows,
        tenants: TenantDatabase,
        alice: Principal,
        superuser: asyncpg.Connection,
    ) -> None:
        for _ in range(3):
            await make_thread(tenants, alice)
        pieces = own.pieces(alice, "threads", rows=2)
        assert (await anext(pieces)).rows == 2
        await set_user_state(superuser, alice.user_id, "erasing")
        for reading in (
            anext(pieces),
            own.begin(alice),
            own.tables(alice),
            own.sizes(alice, most_rows=1),
        ):
            with pytest.raises(UserUnavailable):
                await reading


class TestTakingEverythingAlong:
    async def test_is_done_ten_times_in_an_hour_each_time_on_record(
        self, own: OwnRows, alice: Principal, bob: Principal, superuser: asyncpg.Connection
    ) -> None:
        for _ in range(10):
            await own.begin(alice)
        with pytest.raises(TooManyExports) as refused:
            await own.begin(alice)
        assert refused.value.limit == "exports_per_hour"
        assert 3500 < (refused.value.retry_seconds or 0) <= 3600
        await own.begin(bob)
        acts = "SELECT count(*) FROM audit WHERE action = 'exported'"
        assert await superuser.fetchval(acts) == 11


class TestSizes:
    async def test_are_of_what_is_stored_and_of_nobody_else(
        self,
        own: OwnRows,
        tenants: TenantDatabase,
        alice: Principal,
        bob: Principal,
        superuser: asyncpg.Connection,
    ) -> None:
        data = b'"' + b"".join(b"%x" % (n * 7919) for n in range(20_000)) + b'"'
        await log(tenants, superuser, alice, data, data)
        await log(tenants, superuser, bob, data)
        sizes = {size.table: size for size in await own.sizes(alice, most_rows=100)}
        assert set(sizes) == set(await own.tables(alice))
        events = sizes["run_events"]
        assert (events.rows, events.is_whole) == (2, True)
        assert 50_000 < events.bytes < 2 * len(data) + 1000
        assert sizes["checkpoints"].rows == sizes["checkpoints"].bytes == 0

    async def test_end_where_there_is_too_much_to_count(
        self,
        own: OwnRows,
        tenants: TenantDatabase,
        alice: Principal,
        superuser: asyncpg.Connection,
    ) -> None:
        await log(tenants, superuser, alice, *[b"1"] * 5)
        sizes = {size.table: size for size in await own.sizes(alice, most_rows=4)}
        assert (sizes["run_events"].rows, sizes["run_events"].is_whole) == (4, False)
        assert sizes["threads"].is_whole
