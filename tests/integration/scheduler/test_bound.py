"""Nobody who wants more has less than their share by more than the bound says, whatever happens.

For people f and g who both have calls waiting and are not held back by a cap all the time:
|W_f / w_f - W_g / w_g| <= 3 c_max (K_f / w_f + K_g / w_g) over any interval of it, W being what
their calls have cost, w their weights and K the seats that each may hold.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tenancy.principal import ClaimedRun
from tests.integration.scheduler.conftest import (
    CONTEXT,
    HIGHEST,
    SET_LIMITS,
    Stage,
    pool,
)
from tests.support.tenancy import MODEL, sign_in

T = TypeVar("T")
MOST_PEOPLE = 4
COSTS = [0, 2, 100, HIGHEST // 2, HIGHEST]
ALL, BY_DEFAULT = "null", ""


@dataclass(frozen=True)
class Person:
    """How somebody is served, and what their calls are like."""

    weight: float
    seats: str
    """Their own limit: a number, ``ALL`` that there are, or ``BY_DEFAULT``."""
    habit: int | None
    """What each of their calls costs; None: now this, now that."""
    stays: bool
    """Whether they go on asking to the end."""

    def limits(self) -> str:
        """As they are stored."""
        seats = f', "seats": {self.seats}' if self.seats else ""
        return f'{{"weight": {self.weight}{seats}}}'

    def most_seats(self, capacity: int) -> int:
        """How many seats they may hold at once."""
        if self.seats == ALL:
            return capacity
        return min(int(self.seats), capacity) if self.seats else max(1, capacity - 1)


@dataclass(frozen=True)
class End:
    """A call that ends: which of those in flight, and at what cost."""

    which: int
    cost: int
    estimate: float | None
    """What everybody's next call is taken to cost; None: what is known of theirs."""


@dataclass(frozen=True)
class Trace:
    """Who there is, and what happens."""

    people: list[Person]
    capacity: int
    ends: list[End]


people = st.builds(
    Person,
    weight=st.sampled_from([1.0, 2.0, 4.0, 0.5]),
    seats=st.sampled_from([ALL, ALL, BY_DEFAULT, "1", "2"]),
    habit=st.sampled_from([None, *COSTS]),
    stays=st.sampled_from([True, True, True, False]),
)
ends = st.builds(
    End,
    which=st.integers(0, 3),
    cost=st.sampled_from(COSTS) | st.integers(0, HIGHEST),
    estimate=st.none() | st.sampled_from([0.0, 1.0, 1.0 * HIGHEST, 1e12]),
)


def traces(steps: int) -> st.SearchStrategy[Trace]:
    """Traces of up to so many calls."""
    return st.builds(
        Trace,
        st.lists(people, min_size=2, max_size=MOST_PEOPLE),
        st.integers(1, 4),
        st.lists(ends, min_size=steps // 2, max_size=steps),
    )


@dataclass
class Flood:
    """Everybody asks for more than they can get; what comes of it."""

    stage: Stage
    runs: list[ClaimedRun]
    trace: Trace
    owners: dict[UUID, int] = field(default_factory=dict)
    """Calls that are not over, and whose they are."""
    seated: list[UUID] = field(default_factory=list)
    history: list[tuple[list[float], list[bool]]] = field(default_factory=list)
    """After each end: what each one's calls have cost so far, and whom nothing held back."""

    async def play(self) -> None:
        """All of it, and then on until nobody waits any more."""
        await self.begin()
        for step, end in enumerate(self.trace.ends):
            if not self.seated:
                break
            await self.end(end, is_late=step > len(self.trace.ends) // 2)
            await self.assert_in_order()
        while self.owners:
            assert self.seated, "calls wait, and none is in flight"
            await self.end(End(0, 0, None), is_late=True, is_over=True)
        await self.assert_in_order()
        self.assert_bounded()

    async def begin(self) -> None:
        database = self.stage.superuser
        await database.execute(
            "DELETE FROM model_calls; DELETE FROM model_users; DELETE FROM usage_hours;"
            "UPDATE models SET vnow = 0, estimate = NULL"
        )
        for run, person in zip(self.runs, self.trace.people, strict=False):
            await database.execute(SET_LIMITS, run.user_id, person.limits())
        # Everybody is there before the first seat is given out.
        await self.stage.pools.declare([pool(capacity=0)])
        for number, person in enumerate(self.trace.people):
            for _ in range(person.most_seats(self.trace.capacity) + 1):
                await self.ask(number)
        self.seated += await self.stage.pools.declare([pool(capacity=self.trace.capacity)])
        self.note([0.0] * len(self.trace.people))

    async def ask(self, number: int) -> None:
        call, run = uuid4(), self.runs[number]
        self.owners[call] = number
        asked = await self.stage.seats.take(run, call, self.stage.worker, MODEL, {})
        self.seated += [*asked.granted, *([call] if asked.outcome == "taken" else [])]

    async def end(self, end: End, *, is_late: bool, is_over: bool = False) -> None:
        call = self.seated.pop(end.which % len(self.seated))
        number = self.owners.pop(call)
        person = self.trace.people[number]
        if not is_over and (person.stays or not is_late):
            await self.ask(number)
        if end.estimate is not None:
            await self.stage.superuser.execute("UPDATE model_users SET estimate = $1", end.estimate)
        cost = 2 * ((end.cost if person.habit is None else person.habit) // 2)
        prompt = min(cost, CONTEXT)
        user_id = self.runs[number].user_id
        settled = await self.stage.seats.settle(user_id, call, MODEL, prompt, (cost - prompt) // 2)
        assert settled.first
        self.seated += settled.granted
        work = list(self.history[-1][0])
        work[number] += cost / person.weight
        self.note(work)

    def note(self, work: list[float]) -> None:
        held = [self.owners[call] for call in self.seated]
        waiting = [owner for call, owner in self.owners.items() if call not in self.seated]
        unbound = [
            number in waiting
            and (person.seats == ALL or held.count(number) < self.most_seats(number))
            for number, person in enumerate(self.trace.people)
        ]
        self.history.append((work, unbound))

    def most_seats(self, number: int) -> int:
        return self.trace.people[number].most_seats(self.trace.capacity)

    async def assert_in_order(self) -> None:
        """No seat twice, nobody above their cap, and all that is said about it right."""
        held = await self.stage.superuser.fetch(_HELD)
        assert {row["call_id"] for row in held} == set(self.seated)
        assert len({row["seat"] for row in held}) == len(held) <= self.trace.capacity
        holders = [self.owners[call] for call in self.seated]
        for number in range(len(self.trace.people)):
            assert holders.count(number) <= self.most_seats(number)
        assert await self.stage.superuser.fetch(_WRONG_FLAGS) == []
        assert await self.stage.disagreements() == []

    def assert_bounded(self) -> None:
        for f, g in itertools.combinations(range(len(self.trace.people)), 2):
            shares = [self.most_seats(n) / self.trace.people[n].weight for n in (f, g)]
            bound = 3 * HIGHEST * sum(shares)
            for apart in self.intervals(f, g):
                assert max(apart) - min(apart) <= bound

    def intervals(self, f: int, g: int) -> list[list[float]]:
        """How far two were apart, in each interval in which nothing held either back."""
        together = itertools.groupby(self.history, lambda at: at[1][f] and at[1][g])
        return [
            [work[f] - work[g] for work, _ in points] for is_free, points in together if is_free
        ]


_HELD = "SELECT call_id, seat FROM model_calls WHERE seat IS NOT NULL"
_WRONG_FLAGS = """
SELECT u.user_id FROM model_users u
WHERE u.eligible <> (
  EXISTS (SELECT 1 FROM model_calls c WHERE c.user_id = u.user_id AND c.seat IS NULL)
  AND (
    SELECT count(*) FROM model_calls c WHERE c.user_id = u.user_id AND c.seat IS NOT NULL
  ) < (dispatch.terms_of(u.user_id, u.model)).most_seats
)
"""


@dataclass
class World:
    """The real scheduler; examples are plain functions, in a thread of their own."""

    loop: asyncio.AbstractEventLoop
    stage: Stage
    runs: list[ClaimedRun]

    def do(self, what: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(what, self.loop).result(600)


class TestTheBound:
    @pytest.mark.timeout(3600)
    async def test_holds_whoever_asks_for_whatever(self, nightly: bool, stage: Stage) -> None:
        await stage.pools.declare([pool()])
        crowd = [await sign_in(stage.tenants, f"person {n}") for n in range(MOST_PEOPLE)]
        world = World(
            asyncio.get_running_loop(), stage, [await stage.run_of(person) for person in crowd]
        )

        @settings(
            max_examples=1000 if nightly else 15,
            deadline=None,
            database=None,
            phases=[Phase.explicit, Phase.generate],  # to shrink a trace takes many minutes
            suppress_health_check=list(HealthCheck),
        )
        @given(traces(120 if nightly else 40))
        def try_out(trace: Trace) -> None:
            world.do(Flood(world.stage, world.runs, trace).play())

        await asyncio.to_thread(try_out)

    async def test_holds_against_dear_calls_beside_cheap_ones(self, stage: Stage) -> None:
        """The worst of what a queue by arrival, or one after the other, would do."""
        await stage.pools.declare([pool()])
        crowd = [await sign_in(stage.tenants, f"person {n}") for n in range(3)]
        runs = [await stage.run_of(person) for person in crowd]
        trace = Trace(
            [Person(1, ALL, HIGHEST, True), Person(1, ALL, 2, True), Person(4, ALL, 100, True)],
            1,
            [End(0, 0, None)] * 150,
        )
        flood = Flood(stage, runs, trace)
        await flood.play()
        work, _ = flood.history[-1]
        # Cheap calls are served more often, and nobody gets ahead of anybody.
        assert max(work) - min(work) <= 3 * HIGHEST
