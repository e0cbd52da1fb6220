"""The place that somebody is told is the one at which their turn comes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

import asyncpg
import pytest

from tenancy.principal import ClaimedRun, Principal
from tenancy.scheduler.standing import StandingDatabase
from tests.integration.scheduler.conftest import Stage, pool
from tests.support.tenancy import (
    MODEL,
    TestDatabase,
    claim_runs,
    make_thread,
    queue_run,
    sign_in,
)


@pytest.fixture
async def standing(database: TestDatabase) -> AsyncIterator[StandingDatabase]:
    door = StandingDatabase(database.settings("dispatch"))
    try:
        yield door
    finally:
        await door.close()


async def queue(stage: Stage, person: Principal, runs: int) -> list[UUID]:
    """Runs of a person's that wait, each in a thread of its own."""
    threads = [await make_thread(stage.tenants, person) for _ in range(runs)]
    return [(await queue_run(stage.tenants, person, thread)).run_id for thread in threads]


async def begun_in_order(stage: Stage) -> list[UUID]:
    """All runs that wait, as they are claimed one after the other."""
    begun = []
    while claimed := await claim_runs(stage.dispatch, stage.worker, 1):
        begun.append(claimed[0].run_id)
    return begun


async def hold_the_seat(stage: Stage, person: Principal) -> tuple[ClaimedRun, UUID]:
    """Somebody's call that the only seat is given to."""
    run = await stage.run_of(person)
    call, asked = await stage.ask(run)
    assert asked.outcome == "taken"
    return run, call


class TestThePlaceOfARun:
    async def test_is_the_one_at_which_it_begins(
        self, stage: Stage, standing: StandingDatabase, alice: Principal, bob: Principal
    ) -> None:
        carol = await sign_in(stage.tenants, "carol")
        waiting = {
            person.user_id: await queue(stage, person, runs)
            for person, runs in ((alice, 5), (bob, 2), (carol, 9))
        }
        told: dict[UUID, int] = {}
        for user_id, runs in waiting.items():
            places = await standing.places(user_id, MODEL, len(runs), 0)
            told.update(zip(runs, places.runs, strict=True))
        begun = await begun_in_order(stage)
        assert sorted(told, key=lambda run: told[run]) == begun
        assert sorted(told.values()) == list(range(1, 17))

    async def test_is_behind_those_who_have_used_less(
        self,
        stage: Stage,
        standing: StandingDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        bob: Principal,
    ) -> None:
        await stage.pools.declare([pool()])
        await queue(stage, alice, 2)
        await queue(stage, bob, 3)
        for person, vtime in ((alice, 5000), (bob, 1000)):
            await superuser.execute(
                "INSERT INTO model_users (user_id, model, vtime) VALUES ($1, $2, $3)",
                person.user_id,
                MODEL,
                vtime,
            )
        assert (await standing.places(alice.user_id, MODEL, 2, 0)).runs == (2, 4)
        assert (await standing.places(bob.user_id, MODEL, 3, 0)).runs == (1, 3, 5)

    async def test_counts_of_a_thread_only_the_run_that_is_next(
        self, stage: Stage, standing: StandingDatabase, alice: Principal, bob: Principal
    ) -> None:
        thread = await make_thread(stage.tenants, alice)
        for _ in range(5):
            await queue_run(stage.tenants, alice, thread)
        await queue(stage, bob, 3)
        assert (await standing.places(bob.user_id, MODEL, 3, 0)).runs == (2, 3, 4)

    async def test_of_nobody_is_none(self, standing: StandingDatabase, alice: Principal) -> None:
        places = await standing.places(alice.user_id, MODEL, 0, 0)
        assert (places.runs, places.calls, places.in_use) == ((), {}, {})


class TestThePlaceOfACall:
    async def test_is_the_one_at_which_it_is_given_the_seat(
        self, stage: Stage, standing: StandingDatabase, alice: Principal, bob: Principal
    ) -> None:
        await stage.pools.declare([pool(capacity=1)])
        carol = await sign_in(stage.tenants, "carol")
        run, call = await hold_the_seat(stage, carol)
        waiting: dict[str, ClaimedRun] = {}
        told: dict[str, int] = {}
        for person, calls in ((alice, 2), (bob, 3)):
            his = await stage.run_of(person)
            for _ in range(calls):
                asked, _outcome = await stage.ask(his)
                waiting[str(asked)] = his
        for person in (alice, bob, carol):
            places = await standing.places(person.user_id, MODEL, 0, 10)
            assert all(waiting[each].user_id == person.user_id for each in places.calls)
            assert places.in_use == {MODEL: 1}
            told.update(places.calls)
        served: list[str] = []
        while granted := (await stage.settle(run, call)).granted:
            (call,) = granted
            run = waiting[str(call)]
            assert (await stage.seats.take_up(run.user_id, call)).outcome == "taken"
            served.append(str(call))
        assert sorted(told, key=lambda each: told[each]) == served
        assert sorted(told.values()) == [1, 2, 3, 4, 5]

    async def test_does_not_count_those_who_wait_for_their_own(
        self, stage: Stage, standing: StandingDatabase, alice: Principal, bob: Principal
    ) -> None:
        """Of two seats, one person may have one: who has it does not stand in anybody's way."""
        await stage.pools.declare([pool(capacity=2)])
        carol = await sign_in(stage.tenants, "carol")
        hers, _ = await hold_the_seat(stage, alice)
        await hold_the_seat(stage, carol)
        for _ in range(3):
            await stage.ask(hers)
        call, _ = await stage.ask(await stage.run_of(bob))
        assert (await standing.places(bob.user_id, MODEL, 0, 1)).calls == {str(call): 1}
