"""Two reapers and the owner of a lease that is about to end: one of them gets each run."""

from __future__ import annotations

import asyncio

import asyncpg

from app.runs.events import settle_run
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.errors import LeaseLost
from tenancy.principal import ClaimedRun, Principal
from tenancy.run_states import RunState
from tests.support.tenancy import claim_runs, make_thread, make_worker, queue_run

RUNS = 40
LEASE_SECONDS = 0.5


class TestALeaseThatEndsWhileItsRunsAreSettled:
    async def test_gives_each_run_to_its_owner_or_to_one_reaper(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        for _ in range(RUNS):
            await queue_run(tenants, alice, await make_thread(tenants, alice))
        worker_id = await make_worker(dispatch)
        claimed = await claim_runs(dispatch, worker_id, RUNS, RUNS)
        assert await dispatch.renew_lease(worker_id, LEASE_SECONDS)
        over = asyncio.Event()
        reapers = [asyncio.create_task(_reap_until(dispatch, over)) for _ in range(2)]
        settled = [await _settle(tenants, run) for run in claimed]
        await asyncio.sleep(LEASE_SECONDS)
        over.set()
        reaped = sum(await asyncio.gather(*reapers))
        assert settled.count(True) + reaped == RUNS
        rows = await superuser.fetch(
            "SELECT run_id, state, fence, attempts_spent FROM runs ORDER BY created_at"
        )
        stands = {
            row["run_id"]: (row["state"], row["fence"], row["attempts_spent"]) for row in rows
        }
        for run, is_settled in zip(claimed, settled, strict=True):
            expected = ("success", 1, 0) if is_settled else ("pending", 2, 1)
            assert stands[run.run_id] == expected
        open_attempts = await superuser.fetchval(
            "SELECT count(*) FROM run_attempts WHERE ended_at IS NULL"
        )
        assert open_attempts == 0


async def _settle(tenants: TenantDatabase, run: ClaimedRun) -> bool:
    """Settle a run at its leisure; False if it is the owner's no more."""
    await asyncio.sleep(2 * LEASE_SECONDS / RUNS)
    try:
        await settle_run(tenants, run, RunState.SUCCESS, 1, [])
    except LeaseLost:
        return False
    return True


async def _reap_until(dispatch: DispatchDatabase, over: asyncio.Event) -> int:
    reaped = 0
    while not over.is_set():
        reaped += await dispatch.reap_expired_leases()
        await asyncio.sleep(0)
    return reaped + await dispatch.reap_expired_leases()
