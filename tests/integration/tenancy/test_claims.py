"""The queue: who may have which run, and what becomes of a claim that is lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import asyncpg
import pytest

from app.runs.events import Event, append_events, settle_run
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.errors import LeaseLost
from tenancy.principal import ClaimedRun, Principal
from tenancy.run_states import RunState
from tests.support.tenancy import (
    TestDatabase,
    claim_runs,
    claimed_run,
    expire_leases,
    make_thread,
    make_worker,
    queue_run,
    set_user_state,
    sign_in,
)


async def row(superuser: asyncpg.Connection, run_id: UUID) -> tuple[str, int, int]:
    """A run's state, fence and the attempts that it has spent."""
    found = await superuser.fetchrow(
        "SELECT state::text, fence, attempts_spent FROM runs WHERE run_id = $1", run_id
    )
    return tuple(found)


@pytest.fixture
async def claimers(database: TestDatabase) -> AsyncIterator[list[DispatchDatabase]]:
    """Four processes' worth of doors."""
    doors = [DispatchDatabase(database.settings("dispatch")) for _ in range(4)]
    try:
        yield doors
    finally:
        for door in doors:
            await door.close()


class TestAClaim:
    async def test_raises_the_fence_and_counts_the_attempt(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        run = await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        assert run.fence == 1
        assert await row(superuser, run.run_id) == ("running", 1, 0)
        await expire_leases(superuser)
        assert await dispatch.reap_expired_leases() == 1
        assert await row(superuser, run.run_id) == ("pending", 2, 1)
        (again,) = await claim_runs(dispatch, await make_worker(dispatch), 1)
        assert (again.run_id, again.fence) == (run.run_id, 3)
        assert await row(superuser, run.run_id) == ("running", 3, 1)

    async def test_takes_the_head_of_each_thread_only(
        self, tenants: TenantDatabase, dispatch: DispatchDatabase, alice: Principal
    ) -> None:
        threads = [await make_thread(tenants, alice) for _ in range(3)]
        heads = [(await queue_run(tenants, alice, thread)).run_id for thread in threads]
        for thread in threads:
            await queue_run(tenants, alice, thread)
        worker = await make_worker(dispatch)
        assert {r.run_id for r in await claim_runs(dispatch, worker, 10)} == set(heads)
        assert await claim_runs(dispatch, worker, 10) == []

    async def test_goes_on_to_the_next_of_a_thread_when_the_head_has_ended(
        self, tenants: TenantDatabase, dispatch: DispatchDatabase, alice: Principal
    ) -> None:
        thread = await make_thread(tenants, alice)
        first, second = [await queue_run(tenants, alice, thread) for _ in range(2)]
        worker = await make_worker(dispatch)
        (run,) = await claim_runs(dispatch, worker, 10)
        assert run.run_id == first.run_id
        await settle_run(tenants, run, RunState.SUCCESS, 1, [])
        assert [r.run_id for r in await claim_runs(dispatch, worker, 10)] == [second.run_id]

    async def test_passes_over_whoever_may_not_be_served(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        alice: Principal,
        superuser: asyncpg.Connection,
    ) -> None:
        waiting = await queue_run(tenants, alice, await make_thread(tenants, alice))
        await set_user_state(superuser, alice.user_id, "suspended")
        worker = await make_worker(dispatch)
        assert await claim_runs(dispatch, worker, 10) == []
        await set_user_state(superuser, alice.user_id, "active")
        assert [r.run_id for r in await claim_runs(dispatch, worker, 10)] == [waiting.run_id]

    async def test_takes_no_more_than_there_is_room_for(
        self, tenants: TenantDatabase, dispatch: DispatchDatabase, alice: Principal
    ) -> None:
        for _ in range(5):
            await queue_run(tenants, alice, await make_thread(tenants, alice))
        worker = await make_worker(dispatch)
        assert [len(await claim_runs(dispatch, worker, n)) for n in (0, 2, 10)] == [
            0,
            2,
            3,
        ]

    async def test_by_several_at_once_keeps_each_users_cap_and_takes_nothing_twice(
        self,
        tenants: TenantDatabase,
        claimers: list[DispatchDatabase],
        superuser: asyncpg.Connection,
    ) -> None:
        crowd = [await sign_in(tenants, f"person {n}") for n in range(3)]
        for person in crowd:
            for _ in range(8):
                await queue_run(tenants, person, await make_thread(tenants, person))
        workers = [await make_worker(door) for door in claimers]
        claims = [
            claim_runs(door, worker, 5, 3)
            for door, worker in zip(claimers, workers, strict=True)
            for _ in range(3)
        ]
        claimed = [run for runs in await asyncio.gather(*claims) for run in runs]
        assert Counter(run.user_id for run in claimed) == {p.user_id: 3 for p in crowd}
        assert len({run.run_id for run in claimed}) == len(claimed) == 9
        running = "SELECT count(*) FROM runs WHERE state = 'running'"
        assert await superuser.fetchval(running) == 9

    @pytest.mark.parametrize("known", [True, False])
    async def test_without_a_living_lease_claims_nothing(
        self,
        known: bool,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        run = await queue_run(tenants, alice, await make_thread(tenants, alice))
        worker = await make_worker(dispatch) if known else uuid4()
        await expire_leases(superuser)
        with pytest.raises(LeaseLost):
            await claim_runs(dispatch, worker, 10)
        assert await row(superuser, run.run_id) == ("pending", 0, 0)


class TestALease:
    async def test_is_never_revived(
        self, dispatch: DispatchDatabase, superuser: asyncpg.Connection
    ) -> None:
        worker = await make_worker(dispatch)
        assert await dispatch.renew_lease(worker, 60)
        await expire_leases(superuser)
        assert not await dispatch.renew_lease(worker, 60)
        assert not await dispatch.renew_lease(uuid4(), 60)

    async def test_that_is_over_is_reaped_once_by_two_at_once(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        claimers: list[DispatchDatabase],
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        for _ in range(5):
            await queue_run(tenants, alice, await make_thread(tenants, alice))
        worker = await make_worker(dispatch)
        claimed = await claim_runs(dispatch, worker, 5)
        await expire_leases(superuser)
        assert sum(await asyncio.gather(*(d.reap_expired_leases() for d in claimers))) == 5
        for run in claimed:
            assert await row(superuser, run.run_id) == ("pending", 2, 1)
        await dispatch.reap_expired_leases()
        assert await superuser.fetchval("SELECT count(*) FROM workers") == 0

    async def test_of_a_living_worker_is_not_reaped(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        run = await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        assert await dispatch.reap_expired_leases() == 0
        assert await row(superuser, run.run_id) == ("running", 1, 0)

    async def test_that_is_given_back_counts_no_attempt(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        run = await queue_run(tenants, alice, await make_thread(tenants, alice))
        worker = await make_worker(dispatch)
        (claimed,) = await claim_runs(dispatch, worker, 1)
        assert await dispatch.retire_worker(worker) == 1
        assert await row(superuser, run.run_id) == ("pending", claimed.fence + 1, 0)
        with pytest.raises(LeaseLost):
            await claim_runs(dispatch, worker, 1)

    async def test_that_is_given_back_leaves_other_workers_runs_alone(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        run = await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        assert await dispatch.retire_worker(await make_worker(dispatch)) == 0
        assert await row(superuser, run.run_id) == ("running", 1, 0)


class TestAnOldClaim:
    @pytest.fixture
    async def old(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> ClaimedRun:
        """A claim whose run another worker holds by now."""
        run = await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        await expire_leases(superuser)
        await dispatch.reap_expired_leases()
        await claim_runs(dispatch, await make_worker(dispatch), 1)
        return run

    async def test_writes_no_row_and_ends_nothing(
        self, tenants: TenantDatabase, superuser: asyncpg.Connection, old: ClaimedRun
    ) -> None:
        said = [Event("values", b"{}")]
        with pytest.raises(LeaseLost):
            await append_events(tenants, old, 1, said)
        with pytest.raises(LeaseLost):
            await settle_run(tenants, old, RunState.SUCCESS, 1, said)
        assert await superuser.fetchval("SELECT count(*) FROM run_events") == 0
        assert await row(superuser, old.run_id) == ("running", 3, 1)

    async def test_of_a_run_that_ended_changes_nothing(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        run = await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        await settle_run(tenants, run, RunState.SUCCESS, 1, [])
        with pytest.raises(LeaseLost):
            await settle_run(tenants, run, RunState.ERROR, 1, [Event("error", b"{}")])
        with pytest.raises(LeaseLost):
            await append_events(tenants, run, 1, [Event("values", b"{}")])
        assert await superuser.fetchval("SELECT count(*) FROM run_events") == 0
        assert (await row(superuser, run.run_id))[0] == "success"


class TestARunThatIsGivenBack:
    async def test_waits_again_under_a_higher_fence_and_keeps_its_attempt(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        run = await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        assert await dispatch.release_run(run, spend=True)
        assert await row(superuser, run.run_id) == ("pending", 2, 1)
        with pytest.raises(LeaseLost):
            await settle_run(tenants, run, RunState.SUCCESS, 1, [])

    async def test_is_left_alone_once_it_is_another_claims(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        run = await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        assert await dispatch.release_run(run, spend=True)
        (again,) = await claim_runs(dispatch, await make_worker(dispatch), 1)
        assert not await dispatch.release_run(run, spend=True)
        assert await row(superuser, run.run_id) == ("running", again.fence, 1)
