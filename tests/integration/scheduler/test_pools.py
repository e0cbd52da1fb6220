"""Pools come, fail, shrink and go, and whoever waits goes where there is room."""

from __future__ import annotations

import asyncio
from collections import Counter

import asyncpg
import pytest

from tenancy.database.engine import DatabaseUnavailable
from tenancy.principal import Principal
from tests.integration.scheduler.conftest import HIGHEST, Stage, pool
from tests.support.tenancy import MODEL, TestDatabase, sign_in

OTHER = "other:latest"
HOLD_MODEL = "SELECT 1 FROM models WHERE model = $1 FOR NO KEY UPDATE"
WAITS_FOR_A_ROW = """
SELECT EXISTS (
  SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid)
  WHERE locktype = 'transactionid' AND NOT granted AND datname = current_database()
)
"""


class TestSeveralPoolsWithOneModel:
    async def test_share_its_calls_as_their_capacities_are(
        self, stage: Stage, alice: Principal
    ) -> None:
        await stage.pools.declare([pool("small", 1), pool("large", 3)])
        await stage.limit(alice, '{"seats": null}')
        run = await stage.run_of(alice)
        asked = [(await stage.ask(run))[1] for _ in range(5)]
        places = Counter(each.seat.pool for each in asked if each.seat is not None)
        assert places == {"small": 1, "large": 3}
        assert asked[-1].outcome == "waiting"

    async def test_serve_one_queue(self, stage: Stage, alice: Principal, bob: Principal) -> None:
        await stage.pools.declare([pool("one", 1), pool("two", 1)])
        hers, his = await stage.run_of(alice), await stage.run_of(bob)
        held = await stage.take(hers)
        await stage.take(his)
        waiting = await stage.wait(his)
        # Whichever of them has a seat again, nobody waits for the other.
        assert (await stage.settle(hers, held)).granted == ()  # his only seat is in use
        await stage.limit(bob, '{"seats": 2}')
        assert await stage.pools.declare([pool("one", 2), pool("two", 1)]) == (waiting,)

    async def test_go_on_without_one_that_fails(self, stage: Stage, alice: Principal) -> None:
        await stage.pools.declare([pool("bad", 1), pool("good", 1)])
        run = await stage.run_of(alice)
        call, asked = await stage.ask(run)
        assert asked.seat is not None
        assert asked.seat.pool == "bad"
        await stage.settle(run, call, 0, 0, "unreachable")
        _, asked = await stage.ask(run)
        assert asked.seat is not None
        assert asked.seat.pool == "good"


class TestAServerThatTwoModelsShare:
    @pytest.fixture
    async def shared(self, stage: Stage) -> Stage:
        await stage.pools.declare(
            [
                pool("chat", 2, MODEL, server="one", server_capacity=2),
                pool("embed", 2, OTHER, server="one", server_capacity=2),
            ]
        )
        return stage

    async def test_is_not_asked_for_more_than_it_can_do(
        self, shared: Stage, alice: Principal, bob: Principal
    ) -> None:
        hers, his = await shared.run_of(alice), await shared.run_of(bob)
        held = [await shared.take(hers), await shared.take(his)]
        waiting = await shared.wait(hers, OTHER)
        settled = await shared.settle(his, held[1])
        assert (settled.granted, settled.others) == ((), (OTHER,))
        assert await shared.seats.serve(OTHER) == (waiting,)
        assert await shared.outcome(hers, waiting) == "taken"
        assert (await shared.ask(his))[1].outcome == "waiting"

    async def test_serves_a_neighbour_whose_turn_was_not_announced(
        self, shared: Stage, alice: Principal, bob: Principal
    ) -> None:
        hers, his = await shared.run_of(alice), await shared.run_of(bob)
        held = [await shared.take(hers), await shared.take(his)]
        waiting = await shared.wait(hers, OTHER)
        await shared.settle(his, held[1])  # whoever settled it died before it served the others
        assert await shared.tend() == (waiting,)

    async def test_by_many_at_once_is_never_asked_for_more_and_holds_up_nobody(
        self, shared: Stage
    ) -> None:
        await shared.pools.declare(
            [
                pool("chat 1", 2, MODEL, server="one", server_capacity=2),
                pool("embed 1", 2, OTHER, server="one", server_capacity=2),
                pool("chat 2", 2, MODEL, server="two", server_capacity=1),
                pool("embed 2", 2, OTHER, server="two", server_capacity=1),
            ]
        )
        people = [await sign_in(shared.tenants, f"person {n}") for n in range(4)]
        runs = [await shared.run_of(person) for person in people]

        async def go_on(number: int) -> None:
            run, model = runs[number % 4], (MODEL, OTHER)[number % 2]
            for _ in range(10):
                call, asked = await shared.ask(run, model=model)
                while asked.outcome == "waiting":
                    await shared.tend()
                    asked = await shared.seats.take_up(run.user_id, call)
                    if asked.outcome == "gone":  # or it was given a seat between two looks
                        _, asked = await shared.ask(run, call, model)
                assert asked.outcome == "taken"
                settled = await shared.settle(run, call, model=model)
                for other in settled.others:
                    await shared.seats.serve(other)

        going_on = asyncio.gather(*(go_on(number) for number in range(8)))
        while not going_on.done():
            assert await shared.value(_SERVERS_ASKED_FOR_TOO_MUCH) == 0
        await going_on
        calls = "SELECT sum(calls) FROM usage_hours WHERE model <> ''"
        assert await shared.value(calls) == 80


_SERVERS_ASKED_FOR_TOO_MUCH = """
SELECT count(*) FROM model_servers v WHERE v.capacity < (
  SELECT count(*) FROM model_calls c JOIN pools p USING (pool) WHERE p.server = v.server
)
"""


class TestACapacity:
    async def test_that_grows_is_given_out_at_once(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        await stage.pools.declare([pool(capacity=1)])
        hers, his = await stage.run_of(alice), await stage.run_of(bob)
        await stage.take(hers)
        waiting = [await stage.wait(his), await stage.wait(hers)]
        assert await set_capacity(stage, 3) == tuple(waiting)

    async def test_that_shrinks_ends_no_call_and_gives_nothing_out_until_it_is_kept(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        await stage.pools.declare([pool(capacity=4)])
        hers, his = await stage.run_of(alice), await stage.run_of(bob)
        held = [await stage.take(hers) for _ in range(3)]
        waiting = await stage.wait(hers)
        assert await set_capacity(stage, 1) == ()
        assert await stage.disagreements() == []
        last = await stage.wait(his)
        assert (await stage.settle(hers, held[0])).granted == ()
        assert (await stage.settle(hers, held[1])).granted == ()
        assert (await stage.settle(hers, held[2])).granted == (waiting,)
        assert (await stage.settle(hers, waiting)).granted == (last,)
        # The seat that it has is the one that is left.
        assert await stage.value("SELECT seat FROM model_calls") == 1

    async def test_of_nothing_lets_all_wait_and_goes_on_when_it_is_lifted(
        self, stage: Stage, alice: Principal
    ) -> None:
        await stage.pools.declare([pool(capacity=1)])
        run = await stage.run_of(alice)
        await set_capacity(stage, 0)
        waiting = await stage.wait(run)
        assert await stage.tend() == ()
        assert await stage.disagreements() == []
        assert await set_capacity(stage, None) == (waiting,)

    async def test_below_nothing_is_refused(self, stage: Stage) -> None:
        await stage.pools.declare([pool(capacity=2)])
        with pytest.raises(asyncpg.CheckViolationError):
            await set_capacity(stage, -1)
        with pytest.raises(asyncpg.CheckViolationError):
            await stage.pools.declare([pool(capacity=-1)])
        assert await stage.value("SELECT capacity FROM pools") == 2

    async def test_that_an_operator_set_stays_when_the_settings_are_declared_again(
        self, stage: Stage
    ) -> None:
        await stage.pools.declare([pool(capacity=2)])
        await set_capacity(stage, 5)
        await stage.pools.declare([pool(capacity=3)])
        assert await stage.value("SELECT capacity FROM pools") == 5
        await set_capacity(stage, None)
        assert await stage.value("SELECT capacity FROM pools") == 3


async def set_capacity(stage: Stage, capacity: int | None) -> tuple[object, ...]:
    """What an operator sets; the calls that were given a seat by it."""
    row = await stage.superuser.fetchrow(
        "SELECT * FROM dispatch.set_capacity('default', $1, NULL, 'somebody', 'a test')", capacity
    )
    assert row is not None
    assert row[0]
    return tuple(row["granted"])


class TestAPoolThatIsRemoved:
    async def test_while_it_is_in_use_lets_its_calls_end_and_begins_nothing_new(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        await stage.pools.declare([pool("old", 1), pool("new", 1)])
        hers, his = await stage.run_of(alice), await stage.run_of(bob)
        held = {}
        for run in (hers, his):
            call, asked = await stage.ask(run)
            assert asked.seat is not None
            held[asked.seat.pool] = (run, call)
        await stage.pools.declare([pool("new", 1)])
        waiting = await stage.wait(hers)
        assert (await stage.settle(*held["old"])).granted == ()
        assert (await stage.settle(*held["new"])).granted == (waiting,)

    async def test_as_the_last_of_its_model_tells_those_who_wait(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        await stage.pools.declare([pool(), pool("else", model=OTHER)])
        hers, his = await stage.run_of(alice), await stage.run_of(bob)
        held = await stage.take(hers)
        waiting = await stage.wait(his)
        await stage.pools.declare([pool("else", model=OTHER)])
        assert await stage.outcome(his, waiting) == "no_model"
        assert (await stage.settle(his, waiting, 0, 0)).first
        assert (await stage.settle(hers, held)).granted == ()
        assert (await stage.ask(his))[1].outcome == "no_model"

    async def test_and_declared_again_serves_who_waits(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        await stage.pools.declare([pool("default"), pool("spare", 0)])
        hers, his = await stage.run_of(alice), await stage.run_of(bob)
        held = await stage.take(hers)
        waiting = await stage.wait(his)
        await stage.pools.declare([pool("spare", 0)])
        assert (await stage.settle(hers, held)).granted == ()
        assert await stage.pools.declare([pool("default"), pool("spare", 0)]) == (waiting,)

    async def test_from_its_model_gives_no_seat_with_another(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        await stage.pools.declare([pool(), pool("spare", 0)])
        hers, his = await stage.run_of(alice), await stage.run_of(bob)
        held = await stage.take(hers)
        given = await stage.wait(his)
        await stage.settle(hers, held)
        await stage.pools.declare([pool(model=OTHER), pool("spare", 0)])
        # He was given a seat and has not come for it: what is there now is another model.
        assert await stage.outcome(his, given) == "gone"
        await stage.settle(his, given, 0, 0)

    async def test_is_held_in_one_order_with_those_that_are_declared(
        self, stage: Stage, database: TestDatabase
    ) -> None:
        await stage.pools.declare([pool("one", model=MODEL), pool("two", model=OTHER)])
        first, then = sorted([MODEL, OTHER])
        await stage.pools.declare([pool(model=then)])
        other = await database.connect("dispatch")
        try:
            async with asyncio.TaskGroup() as group, other.transaction():
                await other.execute(HOLD_MODEL, first)
                group.create_task(stage.pools.declare([pool(model=then)]))
                while not await stage.value(WAITS_FOR_A_ROW):  # noqa: ASYNC110 - the database knows
                    await asyncio.sleep(0.005)
                # Whoever holds several models goes on like this.
                await other.execute(HOLD_MODEL, then)
        finally:
            await other.close()


class TestTwoPoolsWithOneName:
    async def test_are_refused_and_change_nothing(self, stage: Stage) -> None:
        await stage.pools.declare([pool(capacity=1)])
        with pytest.raises((asyncpg.PostgresError, DatabaseUnavailable)):
            await stage.pools.declare([pool(capacity=2), pool(capacity=3)])
        assert await stage.value("SELECT capacity FROM pools") == 1


class TestAPoolThatFails:
    async def test_is_taken_out_probed_by_one_and_put_back(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        await stage.pools.declare([pool()])
        hers, his = await stage.run_of(alice), await stage.run_of(bob)
        held = await stage.take(hers)
        waiting = await stage.wait(his)
        assert (await stage.settle(hers, held, 0, 0, "unreachable")).granted == ()
        asked = await stage.seats.take_up(bob.user_id, waiting)
        assert (asked.outcome, asked.reason) == ("out", "unreachable")
        probing = await asyncio.gather(*(stage.pools.to_probe(60) for _ in range(4)))
        assert [each.pool for found in probing for each in found] == ["default"]
        assert await stage.pools.reopen("default") == (waiting,)
        assert await stage.pools.to_probe(0) == []
        assert await stage.outcome(his, waiting) == "taken"

    @pytest.mark.parametrize(
        ("outcomes", "state"),
        [
            (["a failed", "b failed"], "open"),
            (["a failed", "a failed", "b failed"], "failing"),
            (["a failed", "b failed", "b", "a failed"], "open"),
            (["a failed"] * 5, "open"),
            (["a failed"] * 6, "failing"),
            (["a model_missing"], "failing"),
        ],
    )
    async def test_is_one_that_fails_thrice_in_a_row_for_several_or_has_not_got_the_model(
        self, stage: Stage, alice: Principal, bob: Principal, outcomes: list[str], state: str
    ) -> None:
        await stage.pools.declare([pool()])
        runs = {"a": await stage.run_of(alice), "b": await stage.run_of(bob)}
        for outcome in outcomes:
            who, _, failure = outcome.partition(" ")
            call = await stage.take(runs[who])
            await stage.settle(runs[who], call, 1, 1, failure or None)  # type: ignore[arg-type]
        assert await stage.value("SELECT state FROM pools") == state

    async def test_is_paid_for_by_whoever_made_it_fail(
        self, stage: Stage, alice: Principal
    ) -> None:
        await stage.pools.declare([pool()])
        run = await stage.run_of(alice)
        await stage.settle(run, await stage.take(run), 0, 0, "failed")
        assert await stage.vtime(alice) == HIGHEST * 1000 // 2
        assert await stage.value("SELECT sum(prompt_tokens + output_tokens) FROM usage_hours") == 0

    async def test_is_probed_though_the_clock_was_set_back(
        self, stage: Stage, alice: Principal
    ) -> None:
        await stage.pools.declare([pool()])
        run = await stage.run_of(alice)
        await stage.settle(run, await stage.take(run), 0, 0, "unreachable")
        await stage.superuser.execute("UPDATE pools SET probed_at = now() + interval '1 hour'")
        assert [each.pool for each in await stage.pools.to_probe(60)] == ["default"]
