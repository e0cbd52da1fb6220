"""What is kept for a while only goes when its time is over, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import asyncpg
import structlog

from app.runs.events import Event, append_events, read_log
from tenancy.checkpoints.pool import CheckpointPool
from tenancy.checkpoints.store import TenantStore
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import ClaimedRun, Principal
from tenancy.run_states import RunState
from tests.integration.worker.retention.conftest import EVENTS, HOURS, Retaining, until
from tests.support.tenancy import TestDatabase, claimed_run, make_thread, set_user_state

KEPT = [
    *("metadata", "values", "messages/metadata", "messages/complete", "updates", "custom"),
    "values",
]
LAST_DELTA = 8


async def log_of(tenants: TenantDatabase, run: ClaimedRun) -> tuple[list[str], int]:
    page = await read_log(tenants, run, run.run_id, 0)
    assert page is not None
    return [event.event for event in page.events], page.pruned_through


PRUNED = "SELECT pruned_at IS NOT NULL FROM runs WHERE run_id = $1"


class TestThePiecesOfMessages:
    async def test_go_once_their_run_has_ended_long_ago(
        self,
        tenants: TenantDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        bob: Principal,
        retaining: Retaining,
        ended_run: Callable[..., Any],
    ) -> None:
        old, young = await ended_run(alice), await ended_run(bob)
        await superuser.execute(
            "UPDATE runs SET ended_at = ended_at - interval '2 hours' WHERE run_id = $1", old.run_id
        )
        async with retaining(delta_retention_seconds=HOURS):
            await until(superuser, PRUNED, old.run_id)
        assert await log_of(tenants, old) == (KEPT, LAST_DELTA)
        assert await log_of(tenants, young) == (list(EVENTS), 0)

    async def test_go_in_batches(
        self,
        tenants: TenantDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        retaining: Retaining,
        ended_run: Callable[..., Any],
    ) -> None:
        runs = [await ended_run(alice) for _ in range(3)]
        async with retaining(delta_retention_seconds=0, rows=2, owners=1):
            for run in runs:
                await until(superuser, PRUNED, run.run_id)
        for run in runs:
            assert await log_of(tenants, run) == (KEPT, LAST_DELTA)

    async def test_of_a_run_that_failed_stay(
        self,
        tenants: TenantDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        retaining: Retaining,
        ended_run: Callable[..., Any],
    ) -> None:
        run = await ended_run(alice, RunState.ERROR)
        async with retaining(delta_retention_seconds=0):
            await until(superuser, PRUNED, run.run_id)
        assert await log_of(tenants, run) == (list(EVENTS), 0)

    async def test_of_a_run_under_way_stay(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        retaining: Retaining,
        ended_run: Callable[..., Any],
    ) -> None:
        running = await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        await append_events(tenants, running, 1, [Event("messages", b"{}")])
        other = await ended_run(alice)
        async with retaining(delta_retention_seconds=0):
            await until(superuser, PRUNED, other.run_id)
        assert await log_of(tenants, running) == (["messages"], 0)

    async def test_of_somebody_who_may_not_be_served_hold_up_nobody(
        self,
        superuser: asyncpg.Connection,
        alice: Principal,
        bob: Principal,
        retaining: Retaining,
        ended_run: Callable[..., Any],
    ) -> None:
        suspended, served = await ended_run(alice), await ended_run(bob)
        await set_user_state(superuser, alice.user_id, "suspended")
        async with retaining(delta_retention_seconds=0):
            await until(superuser, PRUNED, served.run_id)
        assert not await superuser.fetchval(PRUNED, suspended.run_id)


async def add_key(
    superuser: asyncpg.Connection, person: Principal, key: str, *, hours: int
) -> None:
    """A key that was used so long ago."""
    await superuser.execute(
        "INSERT INTO idempotency_keys (user_id, route, key, fingerprint, resource_id, created_at)"
        " VALUES ($1, 'runs', $2, '', $3, now() - make_interval(hours => $4))",
        person.user_id,
        key,
        uuid4(),
        hours,
    )


class TestIdempotencyKeys:
    async def test_go_after_a_day(
        self, superuser: asyncpg.Connection, alice: Principal, retaining: Retaining
    ) -> None:
        for key, hours in (("old", 25), ("older", 50), ("young", 23)):
            await add_key(superuser, alice, key, hours=hours)
        async with retaining():
            await until(superuser, "SELECT count(*) = 1 FROM idempotency_keys")
        assert await superuser.fetchval("SELECT key FROM idempotency_keys") == "young"


class TestAnAuthorization:
    async def test_goes_when_nobody_can_finish_it_any_more(
        self, retaining: Retaining, alice: Principal, superuser: asyncpg.Connection
    ) -> None:
        await superuser.execute(
            "INSERT INTO connections (user_id, server) VALUES ($1, 's')", alice.user_id
        )
        await superuser.execute(
            "INSERT INTO authorizations (user_id, state_hash, server, sealed, expires_at)"
            " SELECT $1, hash, 's', '', now() + seconds * interval '1 second'"
            " FROM (VALUES ('\\x01'::bytea, -1), ('\\x02', 600)) AS begun (hash, seconds)",
            alice.user_id,
        )
        async with retaining():
            await until(superuser, "SELECT count(*) = 1 FROM authorizations")
        assert await superuser.fetchval("SELECT state_hash FROM authorizations") == b"\x02"


class TestADeletedThread:
    async def test_goes_with_all_its_rows(
        self,
        tenants: TenantDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        retaining: Retaining,
        ended_run: Callable[..., Any],
    ) -> None:
        run = await ended_run(alice)
        kept = await make_thread(tenants, alice)
        await superuser.execute("UPDATE threads SET deleted_at = now() WHERE thread_id <> $1", kept)
        async with retaining():
            await until(superuser, "SELECT count(*) = 1 FROM threads")
        assert await superuser.fetchval("SELECT thread_id FROM threads") == kept
        assert not await superuser.fetchval("SELECT count(*) FROM runs")
        assert not await superuser.fetchval(
            "SELECT count(*) FROM run_events WHERE run_id = $1", run.run_id
        )


class TestWithoutAMaintenanceRole:
    async def test_nothing_is_dropped_and_an_operator_is_told_once(
        self, tenants: TenantDatabase, retaining: Retaining
    ) -> None:
        with structlog.testing.capture_logs() as logs:
            async with retaining(maintenance_database_url=None):
                pass
        said = [each for each in logs if "STOA_MAINTENANCE_DATABASE_URL" in each["event"]]
        assert [each["log_level"] for each in said] == ["warning"]


class TestADutyThatFails:
    async def test_is_logged_and_keeps_nobody_from_the_others(
        self,
        database: TestDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        retaining: Retaining,
    ) -> None:
        await superuser.execute(
            f'REVOKE SELECT (pruned_at) ON runs FROM "{database.roles().maintenance}"'
        )
        await add_key(superuser, alice, "old", hours=25)
        with structlog.testing.capture_logs() as logs:
            async with retaining(delta_retention_seconds=0):
                await until(superuser, "SELECT count(*) = 0 FROM idempotency_keys")
        broke = {each["kind"] for each in logs if each["event"] == "retention broke"}
        assert broke == {"message_pieces"}


class TestItemsOfAStore:
    async def test_go_when_their_time_is_over(
        self,
        superuser: asyncpg.Connection,
        checkpoints: CheckpointPool,
        alice: Principal,
        bob: Principal,
        retaining: Retaining,
    ) -> None:
        for person in (alice, bob):
            store = TenantStore(checkpoints, person.user_id)
            for number in range(5):
                await store.aput(("notes",), f"{number}", {}, ttl=1)
            await store.aput(("notes",), "later", {}, ttl=60)
            await store.aput(("notes",), "kept", {})
        await superuser.execute("UPDATE store SET expires_at = now() WHERE ttl_minutes = 1")
        async with retaining(rows=2):
            await until(superuser, "SELECT count(*) = 4 FROM store")
        left = await superuser.fetch("SELECT DISTINCT key FROM store ORDER BY key")
        assert [row["key"] for row in left] == ["kept", "later"]
