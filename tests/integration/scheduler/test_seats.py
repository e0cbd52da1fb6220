"""Seats are given out one by one, to whoever has used least, and come back whatever happens."""

from __future__ import annotations

import asyncio

import pytest

from tenancy.errors import LeaseLost
from tenancy.principal import Principal
from tests.integration.scheduler.conftest import HIGHEST, Stage, pool
from tests.support.tenancy import expire_leases, sign_in


class TestASeat:
    async def test_is_taken_at_once_where_one_is_free(self, stage: Stage, alice: Principal) -> None:
        await stage.pools.declare([pool(capacity=1)])
        run = await stage.run_of(alice)
        call, asked = await stage.ask(run)
        assert asked.outcome == "taken"
        assert asked.seat is not None
        assert asked.seat.url == "http://default.test"
        assert (await stage.settle(run, call)).first

    async def test_goes_to_whoever_waits_when_it_is_given_back(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        await stage.pools.declare([pool(capacity=1)])
        run, other = await stage.run_of(alice), await stage.run_of(bob)
        first = await stage.take(run)
        second = await stage.wait(other)
        assert (await stage.settle(run, first)).granted == (second,)
        assert await stage.outcome(other, second) == "taken"

    async def test_is_nobody_elses_while_its_call_goes_on(
        self, stage: Stage, alice: Principal
    ) -> None:
        await stage.pools.declare([pool(capacity=3)])
        await stage.limit(alice, '{"seats": null}')
        runs = [await stage.run_of(alice) for _ in range(5)]
        asked = await asyncio.gather(*(stage.ask(run) for run in runs))
        assert sorted(each.outcome for _, each in asked) == ["taken"] * 3 + ["waiting"] * 2
        assert await stage.value("SELECT count(DISTINCT seat) FROM model_calls") == 3

    async def test_is_asked_for_twice_and_taken_once(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        await stage.pools.declare([pool(capacity=2)])
        run, other = await stage.run_of(alice), await stage.run_of(bob)
        call = await stage.take(run)
        vtime = await stage.vtime(alice)
        await stage.take(other)
        assert (await stage.ask(run, call))[1].outcome == "taken"
        assert await stage.value("SELECT count(*) FROM model_calls") == 2
        assert await stage.vtime(alice) == vtime

    async def test_is_given_to_nobody_who_has_lost_their_lease(
        self, stage: Stage, alice: Principal
    ) -> None:
        await stage.pools.declare([pool()])
        run = await stage.run_of(alice)
        await expire_leases(stage.superuser)
        with pytest.raises(LeaseLost):
            await stage.ask(run)
        assert await stage.value("SELECT count(*) FROM model_calls") == 0

    async def test_of_a_model_that_no_pool_has_is_not_waited_for(
        self, stage: Stage, alice: Principal
    ) -> None:
        await stage.pools.declare([pool()])
        _, asked = await stage.ask(await stage.run_of(alice), model="nobodys:latest")
        assert asked.outcome == "no_model"
        assert await stage.value("SELECT count(*) FROM model_calls") == 0


class TestTheNextInLine:
    async def test_is_whoever_has_used_least(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        await stage.pools.declare([pool(capacity=1)])
        hers, his = await stage.run_of(alice), await stage.run_of(bob)
        # Alice has had much, Bob little; then both want more, and so does somebody who is new.
        await stage.settle(hers, await stage.take(hers), 900, 0)
        await stage.settle(his, await stage.take(his), 10, 0)
        newcomer = await stage.run_of(await sign_in(stage.tenants, "carol"))
        running = (newcomer, await stage.take(newcomer))
        waiting = [await stage.wait(hers), await stage.wait(his)]
        order = []
        for _ in waiting:
            (granted,) = (await stage.settle(*running, 1000, 500)).granted
            order.append(granted)
            running = (his if granted == waiting[1] else hers, granted)
        assert order == [waiting[1], waiting[0]]

    async def test_within_one_person_is_by_priority_then_first_come(
        self, stage: Stage, alice: Principal
    ) -> None:
        await stage.pools.declare([pool(capacity=1)])
        low, middle, high = [await stage.run_of(alice, priority=p) for p in (-5, 0, 5)]
        held = (middle, await stage.take(middle))
        asked = [(run, await stage.wait(run)) for run in (low, middle, middle, high)]
        served = []
        for _ in asked:
            (granted,) = (await stage.settle(*held)).granted
            served.append(granted)
            held = next(each for each in asked if each[1] == granted)
        calls = [call for _, call in asked]
        assert served == [calls[3], calls[1], calls[2], calls[0]]

    async def test_has_no_credit_for_having_been_idle(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        await stage.pools.declare([pool(capacity=1)])
        hers, his = await stage.run_of(alice), await stage.run_of(bob)
        await stage.settle(his, await stage.take(his), 1, 0)
        for _ in range(5):
            await stage.settle(hers, await stage.take(hers), 1000, 500)
        before = await stage.vtime(bob)
        held = await stage.take(hers)
        await stage.wait(his)
        # As far as whoever was served last, and not where he stood long ago.
        vnow = await stage.value("SELECT vnow FROM models")
        assert before < vnow == await stage.vtime(bob)
        await stage.settle(hers, held)

    async def test_in_shares_of_one_two_and_four_as_their_weights_are(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        await stage.pools.declare([pool(capacity=1)])
        carol = await sign_in(stage.tenants, "carol")
        served = {person.user_id: 0 for person in (alice, bob, carol)}
        runs = {person.user_id: await stage.run_of(person) for person in (alice, bob, carol)}
        for person, weight in ((alice, 1), (bob, 2), (carol, 4)):
            await stage.limit(person, f'{{"weight": {weight}}}')
        owners = {}
        holder = carol.user_id
        held = await stage.take(runs[holder])
        for run in runs.values():
            for _ in range(2):
                owners[await stage.wait(run)] = run.user_id
        for _ in range(35):
            (granted,) = (await stage.settle(runs[holder], held, 100, 50)).granted
            held, holder = granted, owners[granted]
            served[holder] += 1
            owners[await stage.wait(runs[holder])] = holder
        assert [served[p.user_id] for p in (alice, bob, carol)] == pytest.approx([5, 10, 20], abs=1)


class TestACap:
    @pytest.mark.parametrize(("capacity", "most"), [(1, 1), (2, 1), (4, 3)])
    async def test_leaves_one_seat_for_somebody_else(
        self, stage: Stage, alice: Principal, bob: Principal, capacity: int, most: int
    ) -> None:
        await stage.pools.declare([pool(capacity=capacity)])
        run = await stage.run_of(alice)
        outcomes = [(await stage.ask(run))[1].outcome for _ in range(capacity + 1)]
        assert outcomes.count("taken") == most
        assert await stage.disagreements() == []
        if capacity > 1:
            await stage.take(await stage.run_of(bob))

    async def test_of_ones_own_counts_instead(self, stage: Stage, alice: Principal) -> None:
        await stage.pools.declare([pool(capacity=4)])
        await stage.limit(alice, '{"seats": 2}')
        run = await stage.run_of(alice)
        outcomes = [(await stage.ask(run))[1].outcome for _ in range(4)]
        assert outcomes == ["taken", "taken", "waiting", "waiting"]

    async def test_that_is_no_limit_is_all_the_seats_that_there_are(
        self, stage: Stage, alice: Principal
    ) -> None:
        await stage.pools.declare([pool(capacity=2)])
        await stage.limit(alice, '{"seats": null}')
        run = await stage.run_of(alice)
        outcomes = [(await stage.ask(run))[1].outcome for _ in range(3)]
        assert outcomes == ["taken", "taken", "waiting"]

    async def test_that_is_lifted_gives_no_more_credit_than_its_seats_can_hold(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        await stage.pools.declare([pool(capacity=2)])
        hers, his = await stage.run_of(alice), await stage.run_of(bob)
        blocked = await stage.take(hers)
        await stage.wait(hers)
        for _ in range(8):
            await stage.settle(his, await stage.take(his), 1000, 500)
        held = await stage.take(his)
        vnow = await stage.value("SELECT vnow FROM models")
        assert await stage.vtime(alice) < vnow - HIGHEST * 1000
        # One seat, weight one: she comes back a whole call behind, and not seven.
        (granted,) = (await stage.settle(hers, blocked, 0, 0)).granted
        charged = await stage.value("SELECT charged FROM model_calls WHERE call_id = $1", granted)
        assert await stage.vtime(alice) == vnow - HIGHEST * 1000 + charged
        await stage.settle(his, held)


class TestACharge:
    async def test_begins_with_an_estimate_and_ends_with_what_was_used(
        self, stage: Stage, alice: Principal
    ) -> None:
        await stage.pools.declare([pool()])
        await stage.limit(alice, '{"weight": 2}')
        run = await stage.run_of(alice)
        call = await stage.take(run)
        assert await stage.vtime(alice) == HIGHEST // 2 * 1000 // 2
        await stage.settle(run, call, 100, 50)
        assert await stage.vtime(alice) == (100 + 2 * 50) * 1000 // 2
        # From now on, what her calls cost of late is expected.
        again = await stage.take(run)
        assert await stage.vtime(alice) == (200 + 200) * 1000 // 2
        await stage.settle(run, again, 1000, 500)
        await stage.take(run)
        expected = round(200 * 0.7 + HIGHEST * 0.3)
        assert await stage.value("SELECT estimate FROM model_calls") == pytest.approx(expected)

    async def test_is_made_once_however_often_a_call_is_settled(
        self, stage: Stage, alice: Principal
    ) -> None:
        await stage.pools.declare([pool()])
        run = await stage.run_of(alice)
        call = await stage.take(run)
        settled = await asyncio.gather(*(stage.settle(run, call, 100, 50) for _ in range(4)))
        assert sum(each.first for each in settled) == 1
        rows = await stage.superuser.fetch(
            "SELECT calls, prompt_tokens, output_tokens FROM usage_hours WHERE model <> ''"
        )
        assert [tuple(row) for row in rows] == [(1, 100, 50)]
        assert await stage.vtime(alice) == 200_000

    async def test_of_a_call_that_was_cut_off_is_what_came_of_it(
        self, stage: Stage, alice: Principal
    ) -> None:
        await stage.pools.declare([pool()])
        run = await stage.run_of(alice)
        await stage.settle(run, await stage.take(run), 7, 0)
        assert await stage.vtime(alice) == 7_000

    async def test_of_a_call_that_never_reached_the_model_is_nothing(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        await stage.pools.declare([pool()])
        run, other = await stage.run_of(alice), await stage.run_of(bob)
        held = await stage.take(run)
        waiting = await stage.wait(other)
        assert (await stage.settle(other, waiting, 0, 0)).first
        await stage.settle(run, held, 0, 0)
        assert await stage.vtime(alice) == await stage.vtime(bob) == 0
        # Her seat was taken and used nothing; his call was never given one.
        assert await stage.value("SELECT sum(calls) FROM usage_hours WHERE model <> ''") == 1

    async def test_beyond_what_a_call_can_cost_keeps_nobody_from_their_turn(
        self, stage: Stage, alice: Principal
    ) -> None:
        await stage.pools.declare([pool()])
        run = await stage.run_of(alice)
        await stage.settle(run, await stage.take(run), 2_000_000_000, 0)
        assert await stage.vtime(alice) == HIGHEST * 1000
        await stage.settle(run, await stage.take(run), -5, -5)
        assert await stage.vtime(alice) == HIGHEST * 1000
        assert await stage.value("SELECT sum(prompt_tokens) FROM usage_hours") == 2_000_000_000
