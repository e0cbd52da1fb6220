"""Whose run is next: whoever has used least, then whoever was served longest ago."""

from __future__ import annotations

import asyncio
from collections import Counter

from app.runs.events import settle_run
from tenancy.principal import Principal
from tenancy.run_states import RunState
from tests.integration.scheduler.conftest import Stage, pool
from tests.support.tenancy import claim_runs, make_thread, queue_run, sign_in


class TestTheNextRun:
    async def test_is_of_whoever_has_used_least(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        await stage.pools.declare([pool()])
        hers, his = await stage.run_of(alice), await stage.run_of(bob)
        await stage.settle(his, await stage.take(his), 1, 0)
        await stage.settle(hers, await stage.take(hers), 1000, 500)
        for person in (alice, bob):
            await queue_run(stage.tenants, person, await make_thread(stage.tenants, person))
        claims = [await claim_runs(stage.dispatch, stage.worker, 1) for _ in range(2)]
        assert [claim.user_id for (claim,) in claims] == [bob.user_id, alice.user_id]

    async def test_is_of_whoever_was_served_longest_ago_where_nobody_has_used_more(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        for person in (alice, alice, alice, bob, bob):
            await queue_run(stage.tenants, person, await make_thread(stage.tenants, person))
        claims = await claim_runs(stage.dispatch, stage.worker, 5)
        owners = [claim.user_id for claim in claims]
        assert owners[0] != owners[1]
        assert owners[2] != owners[3]

    async def test_comes_to_whoever_has_used_the_model_though_others_never_ask_it(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        await stage.pools.declare([pool()])
        hers = await stage.run_of(alice)
        await stage.settle(hers, await stage.take(hers))
        carol = await sign_in(stage.tenants, "carol")
        for person in (alice, *[bob] * 12, *[carol] * 12):
            await queue_run(stage.tenants, person, await make_thread(stage.tenants, person))
        claims = await claim_runs(stage.dispatch, stage.worker, 20)
        assert alice.user_id in {claim.user_id for claim in claims}

    async def test_comes_to_whoever_has_waited_though_others_come_anew(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        for _ in range(20):
            await stage.run_of(alice)
        carol = await sign_in(stage.tenants, "carol")
        for person in (*[alice] * 4, *[bob] * 4, *[carol] * 4):
            await queue_run(stage.tenants, person, await make_thread(stage.tenants, person))
        claims = await claim_runs(stage.dispatch, stage.worker, 12)
        assert Counter(claim.user_id for claim in claims[:6]) == {
            person.user_id: 2 for person in (alice, bob, carol)
        }

    async def test_of_many_who_are_new_is_found_without_a_look_at_each(
        self, stage: Stage, alice: Principal
    ) -> None:
        await stage.pools.declare([pool()])
        run = await stage.run_of(alice)
        for _ in range(3):
            await stage.settle(run, await stage.take(run))
        for n in range(8):
            person = await sign_in(stage.tenants, f"person {n}")
            await queue_run(stage.tenants, person, await make_thread(stage.tenants, person))
        (claim,) = await claim_runs(stage.dispatch, stage.worker, 1)
        changed = "SELECT user_id FROM run_queues WHERE rank > 0 AND user_id <> $1"
        assert await stage.value(changed, alice.user_id) == claim.user_id
        assert await stage.value(f"SELECT count(*) FROM ({changed}) c", alice.user_id) == 1

    async def test_of_a_person_is_by_priority_between_threads_and_never_within_one(
        self, stage: Stage, alice: Principal
    ) -> None:
        one, other = [await make_thread(stage.tenants, alice) for _ in range(2)]
        first = await queue_run(stage.tenants, alice, one, priority=-1)
        await queue_run(stage.tenants, alice, one, priority=100)
        urgent = await queue_run(stage.tenants, alice, other, priority=5)
        claims = await claim_runs(stage.dispatch, stage.worker, 5)
        assert [claim.run_id for claim in claims] == [urgent.run_id, first.run_id]


class TestAScheduledRun:
    async def test_begins_no_sooner_and_holds_up_no_other_of_its_thread(
        self, stage: Stage, alice: Principal
    ) -> None:
        thread = await make_thread(stage.tenants, alice)
        later = await queue_run(stage.tenants, alice, thread, after_seconds=3600)
        now = await queue_run(stage.tenants, alice, thread)
        (claim,) = await claim_runs(stage.dispatch, stage.worker, 5)
        assert claim.run_id == now.run_id
        await settle_run(stage.tenants, claim, RunState.SUCCESS, 1, [])
        assert await claim_runs(stage.dispatch, stage.worker, 5) == []
        # An hour later, nobody says anything: the queue wakes by itself.
        await stage.superuser.execute(
            "UPDATE runs SET due_at = due_at - interval '1 hour' WHERE state = 'pending';"
            "UPDATE run_queues SET wake_at = wake_at - interval '1 hour'"
        )
        (claim,) = await claim_runs(stage.dispatch, stage.worker, 5)
        assert claim.run_id == later.run_id

    async def test_does_not_overtake_the_run_that_was_put_back_though_the_clock_was_set_back(
        self, stage: Stage, alice: Principal
    ) -> None:
        """Else the claim would break the thread's one holder, and with it every claim."""
        thread = await make_thread(stage.tenants, alice)
        first = await queue_run(stage.tenants, alice, thread)
        (claim,) = await claim_runs(stage.dispatch, stage.worker, 1)
        await stage.dispatch.release_run(claim, spend=False)
        await stage.superuser.execute("UPDATE runs SET due_at = due_at + interval '1 hour'")
        await queue_run(stage.tenants, alice, thread)
        (again,) = await claim_runs(stage.dispatch, stage.worker, 5)
        assert again.run_id == first.run_id


class TestACapOnRuns:
    async def test_is_kept_and_the_end_of_a_run_wakes_the_next(
        self, stage: Stage, alice: Principal
    ) -> None:
        for _ in range(3):
            await queue_run(stage.tenants, alice, await make_thread(stage.tenants, alice))
        await stage.limit(alice, '{"running": 1}')
        for _ in range(3):
            (claim,) = await claim_runs(stage.dispatch, stage.worker, 5)
            assert await claim_runs(stage.dispatch, stage.worker, 5) == []
            await settle_run(stage.tenants, claim, RunState.SUCCESS, 1, [])

    async def test_loses_no_wake_up_to_a_claim_that_looks_just_then(
        self, stage: Stage, alice: Principal
    ) -> None:
        await stage.limit(alice, '{"running": 1}')
        threads = [await make_thread(stage.tenants, alice) for _ in range(12)]
        for thread in threads:
            await queue_run(stage.tenants, alice, thread)
        served = 0
        claims = await claim_runs(stage.dispatch, stage.worker, 5)
        while claims:
            (claim,) = claims
            served += 1
            ending = asyncio.create_task(settle_run(stage.tenants, claim, RunState.SUCCESS, 1, []))
            looked = await asyncio.gather(
                *(claim_runs(stage.dispatch, stage.worker, 5) for _ in range(3))
            )
            assert await ending == RunState.SUCCESS
            claims = [each for found in looked for each in found]
            claims += await claim_runs(stage.dispatch, stage.worker, 5)
        assert served == len(threads)
