"""A seat comes back whatever becomes of the call, the run or the worker that had it."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from app.runs.cancelling import cancel_runs
from app.runs.deletion import delete_run, delete_thread
from tenancy.errors import UserUnavailable
from tenancy.principal import ClaimedRun, Principal
from tests.integration.scheduler.conftest import COOLDOWN, HIGHEST, TAKE_UP, Stage, pool
from tests.support.tenancy import TestDatabase, set_user_state

"""How long a seat may be left lying before it goes to the next."""


async def two_runs(
    stage: Stage, alice: Principal, bob: Principal, capacity: int = 1
) -> tuple[ClaimedRun, ClaimedRun]:
    """Alice's run and Bob's, and a pool that they share."""
    await stage.pools.declare([pool(capacity=capacity)])
    return await stage.run_of(alice), await stage.run_of(bob)


class TestASeatThatIsNotTakenUp:
    async def test_goes_to_the_next_after_a_while_and_costs_nothing(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        hers, his = await two_runs(stage, alice, bob)
        held = await stage.take(hers)
        first, second = await stage.wait(his), await stage.wait(hers)
        before = await stage.vtime(bob)
        assert (await stage.settle(hers, held)).granted == (first,)
        await stage.age("granted_at", TAKE_UP - 60)
        assert await stage.tend() == ()
        await stage.age("granted_at", 61)
        assert await stage.tend() == (second,)
        assert await stage.outcome(his, first) == "gone"
        assert await stage.vtime(bob) == before
        # Whoever comes too late has nothing to settle any more.
        assert not (await stage.settle(his, first)).first
        assert await stage.outcome(hers, second) == "taken"

    async def test_stays_taken_where_it_is_taken_up_while_it_is_looked_at(
        self, database: TestDatabase, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        hers, his = await two_runs(stage, alice, bob)
        held = await stage.take(hers)
        call = await stage.wait(his)
        await stage.settle(hers, held)
        await stage.age("granted_at", TAKE_UP + 1)
        taking = await database.connect("dispatch")
        try:
            async with taking.transaction():
                await taking.fetch(
                    "SELECT * FROM dispatch.take_up($1, $2, NULL)", bob.user_id, call
                )
                assert await stage.tend() == ()
        finally:
            await taking.close()
        assert await stage.tend() == ()
        assert (await stage.settle(his, call)).first

    async def test_goes_to_the_next_though_the_clock_was_set_back(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        hers, his = await two_runs(stage, alice, bob)
        held = await stage.take(hers)
        await stage.wait(his)
        second = await stage.wait(hers)
        await stage.settle(hers, held)
        await stage.age("granted_at", -3600)
        assert await stage.tend() == (second,)


class TestASeatOfADeadWorker:
    async def test_cools_down_and_then_goes_to_the_next(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        hers, his = await two_runs(stage, alice, bob)
        await stage.take(hers)
        assert await stage.vtime(alice) == HIGHEST // 2 * 1000
        his = await stage.again(his)
        waiting = await stage.wait(his)
        assert await stage.tend() == ()
        assert await stage.vtime(alice) == 0
        await stage.age("lost_at", COOLDOWN - 60)
        assert await stage.tend() == ()
        await stage.age("lost_at", 61)
        assert await stage.tend() == (waiting,)

    async def test_that_is_settled_late_is_charged_for_what_was_used(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        hers, _ = await two_runs(stage, alice, bob)
        call = await stage.take(hers)
        await stage.lose_worker()
        await stage.tend()
        assert await stage.vtime(alice) == 0
        # It was only frozen, and tells now what the model did.
        assert (await stage.settle(hers, call, 100, 50)).first
        assert await stage.vtime(alice) == 200_000
        assert await stage.value("SELECT sum(output_tokens) FROM usage_hours") == 50
        assert await stage.value("SELECT count(*) FROM model_calls") == 0

    async def test_that_it_never_took_up_and_its_place_in_the_queue_are_free_at_once(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        hers, his = await two_runs(stage, alice, bob)
        held = await stage.take(hers)
        await stage.wait(his)
        await stage.wait(his)
        await stage.settle(hers, held)
        await stage.lose_worker()
        await stage.tend()
        assert await stage.value("SELECT count(*) FROM model_calls") == 0
        assert await stage.vtime(bob) == 0

    async def test_is_not_given_up_for_lost_while_its_lease_lives(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        hers, his = await two_runs(stage, alice, bob)
        call = await stage.take(hers)
        await stage.wait(his)
        await stage.age("granted_at", 3600)
        await stage.age("taken_at", 3600)
        assert await stage.tend() == ()
        assert (await stage.settle(hers, call)).first

    async def test_comes_back_once_by_however_many_tenders(
        self, database: TestDatabase, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        hers, his = await two_runs(stage, alice, bob)
        await stage.take(hers)
        his = await stage.again(his)
        waiting = [await stage.wait(his) for _ in range(3)]
        await stage.tend()
        await stage.age("lost_at", COOLDOWN + 1)
        granted = await asyncio.gather(*(stage.tend() for _ in range(4)))
        assert [call for calls in granted for call in calls] == waiting[:1]


class TestARunThatIsDeleted:
    async def test_leaves_the_queue_with_its_call(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        hers, his = await two_runs(stage, alice, bob)
        held = await stage.take(hers)
        gone = await stage.wait(his)
        await self.delete(stage, bob, his)
        assert await stage.outcome(his, gone) == "gone"
        again = await stage.wait(hers)
        assert (await stage.settle(hers, held)).granted == (again,)

    async def test_while_its_call_has_a_seat_gives_it_back_when_the_model_has_stopped(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        hers, his = await two_runs(stage, alice, bob)
        held = await stage.take(hers)
        waiting = await stage.wait(his)
        await self.delete(stage, alice, hers)
        assert await stage.tend() == ()
        # Its worker hears of it and says what was used until then.
        assert (await stage.settle(hers, held, 10, 0)).granted == (waiting,)

    async def test_with_its_thread_does_not_hold_up_the_seat_of_a_worker_that_forgot(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        hers, his = await two_runs(stage, alice, bob)
        await stage.take(hers)
        waiting = await stage.wait(his)
        thread = await stage.value("SELECT thread_id FROM runs WHERE run_id = $1", hers.run_id)
        async with stage.tenants.writing(alice) as tx:
            await delete_thread(tx, thread)
        await stage.tend()
        await stage.age("lost_at", COOLDOWN + 1)
        assert await stage.tend() == (waiting,)

    async def test_just_now_is_passed_over_and_holds_up_nobody(
        self, database: TestDatabase, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        hers, his = await two_runs(stage, alice, bob)
        held = await stage.take(hers)
        await stage.wait(his)
        second = await stage.wait(hers)
        deleting: asyncpg.Connection = await database.connect("owner")
        try:
            async with deleting.transaction():
                await deleting.execute("DELETE FROM model_calls WHERE run_id = $1", his.run_id)
                assert (await stage.settle(hers, held)).granted == (second,)
        finally:
            await deleting.close()
        assert (await stage.settle(hers, second)).granted == ()

    async def delete(self, stage: Stage, person: Principal, run: ClaimedRun) -> None:
        thread = await stage.value("SELECT thread_id FROM runs WHERE run_id = $1", run.run_id)
        async with stage.tenants.writing(person) as tx:
            await delete_run(tx, thread, run.run_id)


class TestARunThatIsCancelled:
    async def test_after_its_worker_died_leaves_no_call_behind(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        hers, his = await two_runs(stage, alice, bob)
        await stage.take(hers)
        await stage.wait(his)
        await stage.lose_worker()
        await cancel_runs(stage.tenants, alice, run_ids=[hers.run_id])
        await cancel_runs(stage.tenants, bob, run_ids=[his.run_id])
        await stage.tend()
        await stage.age("lost_at", COOLDOWN + 1)
        await stage.tend()
        assert await stage.value("SELECT count(*) FROM model_calls") == 0


class TestSomebodyWhoIsSuspended:
    async def test_is_given_no_further_seat_and_holds_up_nobody(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        hers, his = await two_runs(stage, alice, bob)
        held = await stage.take(hers)
        waiting = await stage.wait(his)
        await set_user_state(stage.superuser, alice.user_id, "suspended")
        with pytest.raises(UserUnavailable):
            await stage.ask(hers)
        assert (await stage.settle(hers, held)).granted == (waiting,)
        assert await stage.value("SELECT sum(calls) FROM usage_hours WHERE model <> ''") == 1

    async def test_while_they_wait_is_passed_over_until_they_come_back(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        hers, his = await two_runs(stage, alice, bob)
        held = await stage.take(hers)
        waiting = await stage.wait(his)
        await set_user_state(stage.superuser, bob.user_id, "suspended")
        assert (await stage.settle(hers, held)).granted == ()
        assert await stage.tend() == ()
        await set_user_state(stage.superuser, bob.user_id, "active")
        assert await stage.tend() == (waiting,)
