"""A cancel is committed before it is answered, and what was answered holds."""

from __future__ import annotations

import asyncio
from uuid import UUID

import asyncpg
import pytest

from app.runs.cancelling import CancelAction, cancel_runs
from app.runs.events import Event, read_log, settle_run
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.errors import LeaseLost
from tenancy.principal import ClaimedRun, Principal
from tenancy.run_states import TERMINAL, RunState
from tests.support.tenancy import (
    claim_runs,
    claimed_run,
    expire_leases,
    make_thread,
    make_worker,
    queue_run,
)

RACES = 100


class TestACancel:
    async def test_ends_a_queued_run_on_the_spot(
        self, tenants: TenantDatabase, dispatch: DispatchDatabase, alice: Principal
    ) -> None:
        run = await queue_run(tenants, alice, await make_thread(tenants, alice))
        (cancelled,) = await cancel_runs(tenants, alice, run_ids=[run.run_id])
        assert (cancelled.run_id, cancelled.thread_id) == (run.run_id, run.thread_id)
        assert cancelled.state == RunState.CANCELLED
        assert await claim_runs(dispatch, await make_worker(dispatch), 10, 10) == []

    async def test_tells_a_running_one_which_then_ends_in_no_other_way(
        self, tenants: TenantDatabase, dispatch: DispatchDatabase, alice: Principal
    ) -> None:
        run = await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        (cancelled,) = await cancel_runs(tenants, alice, run_ids=[run.run_id])
        assert cancelled.state == RunState.RUNNING
        said = [Event("values", b"{}"), Event("error", b"{}")]
        reached = await settle_run(tenants, run, RunState.ERROR, 1, said, error_code="internal")
        assert reached == RunState.CANCELLED
        page = await read_log(tenants, alice, run.run_id, 0)
        assert page is not None
        assert [event.event for event in page.events] == ["values"]
        assert (page.state, page.error_code) == (RunState.CANCELLED, None)

    async def test_is_found_by_the_worker_that_holds_the_run(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        run = await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        worker = await superuser.fetchval("SELECT worker_id FROM runs")
        assert [held.cancel_requested for held in await dispatch.held_runs(worker)] == [False]
        await cancel_runs(tenants, alice, run_ids=[run.run_id])
        assert [held.cancel_requested for held in await dispatch.held_runs(worker)] == [True]

    async def test_outlives_the_worker_that_was_told(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        run = await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        await cancel_runs(tenants, alice, run_ids=[run.run_id])
        await expire_leases(superuser)
        await dispatch.reap_expired_leases()
        (again,) = await claim_runs(dispatch, await make_worker(dispatch), 1, 10)
        assert await settle_run(tenants, again, RunState.SUCCESS, 1, []) == RunState.CANCELLED

    async def test_ends_a_run_whose_worker_is_dead_and_shuts_that_worker_out(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        run = await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        await expire_leases(superuser)
        (cancelled,) = await cancel_runs(tenants, alice, run_ids=[run.run_id])
        assert cancelled.state == RunState.CANCELLED
        with pytest.raises(LeaseLost):
            await settle_run(tenants, run, RunState.SUCCESS, 1, [Event("values", b"{}")])
        assert await dispatch.reap_expired_leases() == 0

    async def test_changes_nothing_about_a_run_that_has_ended(
        self, tenants: TenantDatabase, dispatch: DispatchDatabase, alice: Principal
    ) -> None:
        run = await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        await settle_run(tenants, run, RunState.SUCCESS, 1, [])
        assert await cancel_runs(tenants, alice, run_ids=[run.run_id]) == []
        page = await read_log(tenants, alice, run.run_id, 0)
        assert page is not None
        assert page.state == RunState.SUCCESS

    @pytest.mark.parametrize(
        ("actions", "stands"),
        [
            (["interrupt", "interrupt"], "interrupt"),
            (["interrupt", "rollback"], "rollback"),
            (["rollback", "interrupt"], "rollback"),
        ],
    )
    async def test_may_come_twice_and_the_stronger_stands(
        self,
        actions: list[CancelAction],
        stands: str,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        run = await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        asked = []
        for action in actions:
            await cancel_runs(tenants, alice, run_ids=[run.run_id], action=action)
            asked.append(await superuser.fetchval("SELECT cancel_requested_at FROM runs"))
        assert asked[0] == asked[1]
        assert await superuser.fetchval("SELECT cancel_action FROM runs") == stands


class TestManyCancels:
    @pytest.fixture
    async def queued(self, tenants: TenantDatabase, alice: Principal, bob: Principal) -> list[UUID]:
        """Two threads of Alice's with two runs each; Bob has a run too."""
        threads = [await make_thread(tenants, alice) for _ in range(2)]
        ids = [(await queue_run(tenants, alice, thread)).run_id for thread in threads for _ in "ab"]
        await queue_run(tenants, bob, await make_thread(tenants, bob, threads[0]))
        return ids

    async def test_hit_what_matches_every_condition_and_nobody_elses(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        bob: Principal,
        queued: list[UUID],
    ) -> None:
        await claim_runs(dispatch, await make_worker(dispatch), 1, 10)
        thread = await superuser.fetchval("SELECT thread_id FROM runs WHERE run_id = $1", queued[0])

        async def hit(**conditions: object) -> dict[UUID, str]:
            found = await cancel_runs(tenants, alice, **conditions)  # type: ignore[arg-type]
            return {run.run_id: run.state for run in found}

        assert await cancel_runs(tenants, bob, run_ids=queued) == []
        assert await hit(run_ids=[]) == {}
        assert await hit(thread_id=thread, states=[RunState.PENDING]) == {queued[1]: "cancelled"}
        assert await hit(run_ids=[queued[2]]) == {queued[2]: "cancelled"}
        assert await hit(states=[RunState.WAITING]) == {}
        assert await hit() == {queued[0]: "running", queued[3]: "cancelled"}
        assert (
            await superuser.fetchval("SELECT state FROM runs WHERE NOT run_id = ANY ($1)", queued)
            == "pending"
        )


class TestACancelAndTheEndAtOnce:
    async def test_agree_on_the_outcome_whoever_comes_first(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        thread = await make_thread(tenants, alice)
        outcomes = set()
        for race in range(RACES):
            run = await claimed_run(tenants, dispatch, alice, thread)
            cancelling = asyncio.ensure_future(cancel_runs(tenants, alice, run_ids=[run.run_id]))
            said = [Event("values", b"{}")]
            settling = settle_run(tenants, run, RunState.SUCCESS, 1, said)
            if race % 2:  # in half of the races, the cancel has the better start
                await asyncio.sleep(0)
            reached = await settling
            told = [cancelled.state for cancelled in await cancelling]
            page = await read_log(tenants, alice, run.run_id, 0)
            assert page is not None
            assert page.state == reached
            assert (told, reached) in (
                ([], RunState.SUCCESS),
                ([RunState.RUNNING], RunState.CANCELLED),
            )
            assert [event.event for event in page.events] == ["values"]
            outcomes.add(reached)
        assert outcomes == {RunState.SUCCESS, RunState.CANCELLED}

    async def test_agree_though_the_worker_is_dead_to_one_and_alive_to_itself(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        thread = await make_thread(tenants, alice)
        for _ in range(RACES // 4):
            run = await claimed_run(tenants, dispatch, alice, thread)
            _, _, _, settled = await asyncio.gather(
                expire_leases(superuser),
                cancel_runs(tenants, alice, run_ids=[run.run_id]),
                dispatch.reap_expired_leases(),
                self.settle(tenants, run),
            )
            await expire_leases(superuser)
            await cancel_runs(tenants, alice, run_ids=[run.run_id])
            page = await read_log(tenants, alice, run.run_id, 0)
            assert page is not None
            assert page.state in TERMINAL
            assert settled in (None, page.state)

    async def settle(self, tenants: TenantDatabase, run: ClaimedRun) -> RunState | None:
        try:
            return await settle_run(tenants, run, RunState.SUCCESS, 1, [])
        except LeaseLost:
            return None
