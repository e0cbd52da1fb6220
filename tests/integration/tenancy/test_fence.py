"""A worker that was away too long writes nothing for a run that it no longer holds."""

from __future__ import annotations

from dataclasses import replace

import asyncpg
import pytest

from app.runs.events import Event, append_events, read_log, settle_run
from tenancy.checkpoints.pool import CheckpointPool, Fence
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.errors import LeaseLost
from tenancy.principal import ClaimedRun, Principal
from tenancy.run_states import RunState
from tests.support.tenancy import claim_runs, claimed_run, expire_leases, make_thread, make_worker


@pytest.fixture
async def run(tenants: TenantDatabase, dispatch: DispatchDatabase, alice: Principal) -> ClaimedRun:
    return await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))


class TestAClaimOfBefore:
    async def test_stores_no_event(
        self, tenants: TenantDatabase, alice: Principal, run: ClaimedRun
    ) -> None:
        with pytest.raises(LeaseLost):
            await append_events(
                tenants, replace(run, fence=run.fence - 1), 1, [Event("values", b"{}")]
            )
        page = await read_log(tenants, alice, run.run_id, 0)
        assert page is not None
        assert page.events == ()

    async def test_settles_nothing(
        self, tenants: TenantDatabase, alice: Principal, run: ClaimedRun
    ) -> None:
        with pytest.raises(LeaseLost):
            await settle_run(tenants, replace(run, fence=run.fence - 1), RunState.SUCCESS, 1, [])
        page = await read_log(tenants, alice, run.run_id, 0)
        assert page is not None
        assert page.state == RunState.RUNNING

    async def test_takes_back_what_was_written_before_the_guard(
        self, checkpoints: CheckpointPool, run: ClaimedRun
    ) -> None:
        stale = Fence(run.run_id, run.fence - 1)
        with pytest.raises(LeaseLost):
            async with checkpoints.transaction(run.user_id, fence=stale, write=True) as cursor:
                await cursor.execute(
                    "INSERT INTO store (prefix, key, value) VALUES (%s, 'k', '{}')",
                    (str(run.user_id),),
                )
        async with checkpoints.transaction(run.user_id) as cursor:
            await cursor.execute("SELECT count(*) AS n FROM store")
            assert await cursor.fetchone() == {"n": 0}


class TestAClaimThatACrashOfPostgresUndid:
    async def test_begins_nothing_though_another_worker_has_the_same_fence(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        run: ClaimedRun,
    ) -> None:
        begin = "SELECT * FROM tenant.begin_attempt($1, $2, $3, $4)"
        first = await superuser.fetchval("SELECT worker_id FROM runs")
        await superuser.execute(
            "SET session_replication_role = replica;"  # no trigger sees what a crash undoes
            "UPDATE runs SET state = 'pending', fence = 0, attempt = 0, worker_id = NULL;"
            "DELETE FROM run_attempts"
        )
        second = await make_worker(dispatch)
        assert await claim_runs(dispatch, second, 1, 10) == [run]
        with pytest.raises(LeaseLost):
            await tenants.call(run, begin, run.run_id, run.fence, first)
        (row,) = await tenants.call(run, begin, run.run_id, run.fence, second)
        assert row["next_seq"] == 2


class TestALeaseThatRanOut:
    async def test_is_as_good_as_none(
        self, tenants: TenantDatabase, superuser: asyncpg.Connection, run: ClaimedRun
    ) -> None:
        await expire_leases(superuser)
        with pytest.raises(LeaseLost):
            await append_events(tenants, run, 1, [Event("values", b"{}")])
