"""Who had a run when, and how that ended: on record, one row per claim."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from app.runs.cancelling import cancel_runs
from app.runs.events import settle_run
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import ClaimedRun, Principal
from tenancy.run_states import RunState
from tests.support.tenancy import (
    TestDatabase,
    claim_runs,
    claimed_run,
    expire_leases,
    make_thread,
    make_worker,
)


@pytest.fixture
async def run(tenants: TenantDatabase, dispatch: DispatchDatabase, alice: Principal) -> ClaimedRun:
    return await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))


async def claim_again(dispatch: DispatchDatabase) -> ClaimedRun:
    (again,) = await claim_runs(dispatch, await make_worker(dispatch), 1, 10)
    return again


async def record(superuser: asyncpg.Connection, run_id: UUID) -> list[tuple[Any, ...]]:
    """Each attempt's number, fence, and how it ended."""
    found = await superuser.fetch(
        "SELECT attempt, fence, ended_by FROM run_attempts WHERE run_id = $1 ORDER BY fence", run_id
    )
    return [tuple(row) for row in found]


class TestAnAttempt:
    async def test_is_open_while_the_run_is_held(
        self, superuser: asyncpg.Connection, run: ClaimedRun
    ) -> None:
        assert await record(superuser, run.run_id) == [(1, 1, None)]
        assert await superuser.fetchval(
            "SELECT (a.worker_id, a.claimed_at) = (r.worker_id, r.claimed_at)"
            " FROM run_attempts a JOIN runs r USING (user_id, run_id)"
        )

    @pytest.mark.parametrize("outcome", ["success", "error", "timeout", "waiting"])
    async def test_ends_as_the_run_does(
        self,
        outcome: str,
        tenants: TenantDatabase,
        superuser: asyncpg.Connection,
        run: ClaimedRun,
    ) -> None:
        await settle_run(tenants, run, RunState(outcome), 1, [])
        assert await record(superuser, run.run_id) == [(1, 1, outcome)]
        assert await superuser.fetchval("SELECT ended_at >= claimed_at FROM run_attempts")

    async def test_ends_as_cancelled_by_its_worker_or_on_the_spot(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        run: ClaimedRun,
    ) -> None:
        await cancel_runs(tenants, alice, run_ids=[run.run_id])
        assert await record(superuser, run.run_id) == [(1, 1, None)]
        await settle_run(tenants, run, RunState.SUCCESS, 1, [])
        assert await record(superuser, run.run_id) == [(1, 1, "cancelled")]
        other = await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        await expire_leases(superuser)
        await cancel_runs(tenants, alice, run_ids=[other.run_id])
        assert await record(superuser, other.run_id) == [(1, 1, "cancelled")]

    async def test_is_numbered_whether_or_not_it_counted_against_the_limit(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        run: ClaimedRun,
    ) -> None:
        await expire_leases(superuser)
        await dispatch.reap_expired_leases()
        await dispatch.release_run(await claim_again(dispatch), spend=False)
        await dispatch.release_run(await claim_again(dispatch), spend=True)
        (last,) = await claim_runs(dispatch, leaving := await make_worker(dispatch), 1, 10)
        await dispatch.retire_worker(leaving)
        assert await record(superuser, run.run_id) == [
            (1, 1, "lost"),
            (2, 3, "released"),
            (3, 5, "lost"),
            (4, last.fence, "released"),
        ]
        assert await superuser.fetchval("SELECT attempts_spent FROM runs") == 2

    async def test_goes_with_its_run(self, superuser: asyncpg.Connection, run: ClaimedRun) -> None:
        await superuser.execute("DELETE FROM runs")
        assert await record(superuser, run.run_id) == []


class TestAWorkerThatLeaves:
    async def test_waits_for_a_claim_of_its_own_that_is_still_under_way(
        self,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        database: TestDatabase,
        run: ClaimedRun,
    ) -> None:
        """Or the run would be left to a worker that is gone."""
        await dispatch.release_run(run, spend=False)
        worker = await make_worker(dispatch)
        claiming = await database.connect("dispatch")
        try:
            transaction = claiming.transaction()
            await transaction.start()
            await claiming.execute("SELECT dispatch.claim_runs($1, 1, '', '{}')", worker)
            leaving = asyncio.create_task(dispatch.retire_worker(worker))
            while not await superuser.fetchval(  # noqa: ASYNC110 - the server tells nobody
                _SOMEBODY_WAITS_FOR, claiming.get_server_pid()
            ):
                await asyncio.sleep(0.005)
            await transaction.commit()
            assert await leaving == 1
        finally:
            await claiming.close()
        assert await record(superuser, run.run_id) == [(1, 1, "released"), (2, 3, "released")]
        assert (
            await superuser.fetchval("SELECT count(*) FROM workers WHERE worker_id = $1", worker)
            == 0
        )


_SOMEBODY_WAITS_FOR = (
    "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))"
)
