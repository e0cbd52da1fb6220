"""What ``stoa bench fairness`` makes of what it has written down."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from app.bench.fairness.dispatchers import FirstComeSeats, LocalSeats, RoundRobinSeats
from app.bench.fairness.ledger import Call, Ledger
from app.bench.fairness.measures import (
    bound,
    handovers,
    idle_times,
    jain,
    largest_difference,
    served,
    waits,
)
from app.bench.fairness.people import HIGHEST_COST, Person
from app.models.usage import NOTHING
from tenancy.principal import ClaimedRun, UserId
from tenancy.scheduler.seats import Seat

ALICE, BOB = 0, 1
BOTH = (Person("alice", 1), Person("bob", 1))


def call(person: int, asked: float, granted: float | None, ended: float | None) -> Call:
    return Call(person, asked, granted, ended, cost=0 if ended is None else 100)


class TestTheLargestDifference:
    def test_is_one_call_where_two_take_turns(self) -> None:
        calls = [call(n % 2, 0, n, n + 1) for n in range(10)]
        waiting = [call(person, 0, None, None) for person in (ALICE, BOB)]
        assert largest_difference(BOTH, [*calls, *waiting], most_seats=2) == 100

    def test_is_all_that_one_got_while_the_other_waited(self) -> None:
        calls = [call(ALICE, 0, n, n + 1) for n in range(10)]
        waiting = [call(person, 0, None, None) for person in (ALICE, BOB)]
        assert largest_difference(BOTH, [*calls, *waiting], most_seats=2) == 1000

    def test_is_none_while_the_other_wants_nothing(self) -> None:
        calls = [call(ALICE, 0, n, n + 1) for n in range(10)]
        assert largest_difference(BOTH, [*calls, call(ALICE, 0, None, None)], most_seats=2) == 0

    def test_is_none_while_the_other_has_all_the_seats_they_may_have(self) -> None:
        calls = [call(ALICE, 0, n, n + 1) for n in range(10)]
        bobs = [call(BOB, 0, 0, None), call(BOB, 0, None, None)]
        assert largest_difference(BOTH, [*calls, *bobs], most_seats=1) == 0

    def test_is_counted_by_weight(self) -> None:
        people = (Person("alice", 1, weight=4), Person("bob", 1))
        calls = [call(ALICE, 0, n, n + 1) for n in range(8)]
        waiting = [call(person, 0, None, None) for person in (ALICE, BOB)]
        assert largest_difference(people, [*calls, *waiting], most_seats=2) == 200

    def test_may_be_six_times_the_largest_calls_that_somebody_can_have_at_once(self) -> None:
        assert bound(BOTH) == 3 * HIGHEST_COST * (3 + 3)


class TestJainsIndex:
    @pytest.mark.parametrize(
        ("alices", "bobs", "index"), [(100, 100, 1), (100, 0, 0.5), (100, 50, 0.9)]
    )
    def test_is_1_where_all_are_served_alike_and_less_where_not(
        self, alices: float, bobs: float, index: float
    ) -> None:
        calls = [Call(ALICE, 0, 0, 10, alices), Call(BOB, 0, 0, 10, bobs)]
        assert jain(BOTH, Ledger(calls, began=0, ended=10), 10) == [pytest.approx(index)]

    def test_is_taken_of_each_window_by_itself(self) -> None:
        calls = [Call(ALICE, 0, 0, 10, 100), Call(BOB, 0, 10, 20, 100)]
        assert jain(BOTH, Ledger(calls, began=0, ended=20), 10) == [0.5, 0.5]


class TestWhatWasServed:
    def test_is_the_part_of_a_call_that_lies_in_the_time(self) -> None:
        assert served([Call(ALICE, 0, 0, 10, 100)], ALICE, 4, 6) == 20


class TestAWait:
    def test_of_a_call_that_still_waits_lasts_until_the_end(self) -> None:
        calls = [call(ALICE, 1, 3, 4), call(ALICE, 5, None, None), call(ALICE, 0, 0.5, 0.9)]
        assert waits(Ledger(calls, began=2, ended=10), ALICE) == [2, 5]


class TestAnUnusedSeat:
    def test_counts_from_one_call_to_the_next(self) -> None:
        ledger = Ledger([call(ALICE, 0, 0, 5), call(BOB, 1, 7, 9)], began=0, ended=10)
        assert idle_times(ledger, people=2, seats=1, most_seats=1) == [(2, 1)]
        assert handovers(ledger, people=2, most_seats=1) == [2]

    def test_does_not_count_where_nobody_could_use_it(self) -> None:
        calls = [call(ALICE, 0, 0, 5), call(ALICE, 0, None, None), call(BOB, 6, 6, 9)]
        ledger = Ledger(calls, began=0, ended=10)
        assert sum(seconds for seconds, _ in idle_times(ledger, 2, seats=2, most_seats=1)) == 4


class TestADispatcher:
    @pytest.mark.parametrize(
        ("kind", "order"),
        [(FirstComeSeats, "alice alice alice bob"), (RoundRobinSeats, "alice bob alice alice")],
    )
    async def test_gives_one_seat_after_the_other_in_its_order(
        self, kind: type[LocalSeats], order: str
    ) -> None:
        seats = kind(Seat("one", "http://one.test", 100, 100), 1)
        users = {"alice": UserId(uuid4()), "bob": UserId(uuid4())}
        served: list[str] = []

        async def use(name: str) -> None:
            held = await seats.take(ClaimedRun(users[name], uuid4(), 1), "model")
            served.append(name)
            seats.settle(held, NOTHING)

        first = await seats.take(ClaimedRun(UserId(uuid4()), uuid4(), 1), "model")
        async with asyncio.TaskGroup() as group:
            for name in ("alice", "alice", "alice", "bob"):
                group.create_task(use(name))
            await asyncio.sleep(0)
            seats.settle(first, NOTHING)
        assert " ".join(served) == order

    async def test_gives_the_seat_of_one_who_left_to_the_next(self) -> None:
        seats = FirstComeSeats(Seat("one", "http://one.test", 100, 100), 1)
        run = ClaimedRun(UserId(uuid4()), uuid4(), 1)
        first = await seats.take(run, "model")
        leaving = asyncio.create_task(seats.take(run, "model"))
        staying = asyncio.create_task(seats.take(run, "model"))
        await asyncio.sleep(0)
        seats.settle(first, NOTHING)
        leaving.cancel()
        assert (await staying).run == run
