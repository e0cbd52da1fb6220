"""An operator sees who waits, how long and why, and how the models and pools are doing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from app.admin.queue_views import PoolView, QueueView, UserInLine, WaitingItem
from tenancy.principal import Principal
from tenancy.scheduler.oversight import OversightDatabase
from tests.integration.admin.conftest import ACT
from tests.integration.scheduler.conftest import Stage, pool
from tests.support.tenancy import (
    MODEL,
    claim_runs,
    make_thread,
    queue_run,
    set_user_state,
    sign_in,
)

DEFAULTS = {"weight": 1, "running": 2}


async def seen(oversight: OversightDatabase, limit: int = 100) -> QueueView:
    return QueueView.model_validate(await oversight.queue(limit, MODEL, DEFAULTS))


def of(queue: QueueView, person: Principal) -> UserInLine:
    (found,) = (each for each in queue.users if each.user_id == person.user_id)
    return found


def run_in(queue: QueueView, run_id: UUID) -> WaitingItem:
    (found,) = (each for each in queue.waiting if each.run_id == run_id)
    return found


async def begin_later(superuser: asyncpg.Connection, run_id: UUID) -> None:
    await superuser.execute(
        "UPDATE runs SET due_at = clock_timestamp() + interval '1 hour' WHERE run_id = $1", run_id
    )


async def one_run(stage: Stage, person: Principal, thread: UUID | None = None) -> UUID:
    thread = thread or await make_thread(stage.tenants, person)
    return (await queue_run(stage.tenants, person, thread)).run_id


class TestARunThatWaits:
    async def test_waits_for_its_turn(
        self, stage: Stage, oversight: OversightDatabase, alice: Principal
    ) -> None:
        run = await one_run(stage, alice)
        queue = await seen(oversight)
        item = run_in(queue, run)
        assert (item.why, item.waits_for, item.model) == ("queue", "start", None)
        assert item.user_id == alice.user_id
        assert item.waited_seconds == (queue.at - item.since).total_seconds() > 0
        assert (of(queue, alice).queued, of(queue, alice).why) == (1, "queue")
        assert queue.runs.model_dump() == {
            "running": 0,
            "queued": 1,
            "scheduled": 0,
            "waiting": 0,
        }

    async def test_waits_for_the_run_before_it_in_its_thread(
        self, stage: Stage, oversight: OversightDatabase, alice: Principal
    ) -> None:
        thread = await make_thread(stage.tenants, alice)
        first, second = [await one_run(stage, alice, thread) for _ in range(2)]
        queue = await seen(oversight)
        assert (run_in(queue, first).why, run_in(queue, second).why) == ("queue", "thread")
        await claim_runs(stage.dispatch, stage.worker, 1)
        queue = await seen(oversight)
        assert run_in(queue, second).why == "thread"
        assert (of(queue, alice).running, of(queue, alice).why) == (1, "thread")

    async def test_waits_for_its_persons_others_to_end(
        self, stage: Stage, oversight: OversightDatabase, alice: Principal
    ) -> None:
        await oversight.set_limits(alice.user_id, None, {"running": 2}, ACT)
        runs = [await one_run(stage, alice) for _ in range(3)]
        await claim_runs(stage.dispatch, stage.worker, 3)
        queue = await seen(oversight)
        assert [(each.run_id, each.why) for each in queue.waiting] == [(runs[2], "own_limit")]
        assert of(queue, alice).why == "own_limit"

    async def test_waits_for_its_time(
        self,
        stage: Stage,
        oversight: OversightDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        bob: Principal,
    ) -> None:
        later = await one_run(stage, alice)
        await begin_later(superuser, later)
        now = await one_run(stage, bob)
        queue = await seen(oversight)
        assert [each.run_id for each in queue.waiting] == [now, later]
        item = run_in(queue, later)
        assert (item.why, item.waited_seconds) == ("scheduled", 0)
        assert (of(queue, alice).why, of(queue, alice).queued) == ("scheduled", 0)
        assert queue.runs.model_dump() == {
            "running": 0,
            "queued": 1,
            "scheduled": 1,
            "waiting": 0,
        }

    @pytest.mark.parametrize("how", ["by their limit", "as a person"])
    async def test_of_somebody_who_is_suspended(
        self,
        how: str,
        stage: Stage,
        oversight: OversightDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        run = await one_run(stage, alice)
        if how == "as a person":
            await set_user_state(superuser, alice.user_id, "suspended")
        else:
            await oversight.set_limits(alice.user_id, None, {"running": 0}, ACT)
        queue = await seen(oversight)
        assert (run_in(queue, run).why, of(queue, alice).why) == ("suspended", "suspended")

    async def test_of_somebody_whose_tokens_are_used_up(
        self, stage: Stage, oversight: OversightDatabase, alice: Principal
    ) -> None:
        run = await one_run(stage, alice)
        await oversight.set_limits(alice.user_id, None, {"tokens_per_day": 0}, ACT)
        queue = await seen(oversight)
        assert (run_in(queue, run).why, of(queue, alice).why) == ("over_budget", "over_budget")


class TestACallThatWaits:
    async def test_waits_for_others_or_for_its_persons_own(
        self, stage: Stage, oversight: OversightDatabase, alice: Principal, bob: Principal
    ) -> None:
        await stage.pools.declare([pool(capacity=1)])
        first, second, hers = [await stage.run_of(each) for each in (alice, alice, bob)]
        await stage.take(first)
        await stage.wait(second)
        await stage.wait(hers)
        queue = await seen(oversight)
        item = run_in(queue, hers.run_id)
        assert (item.why, item.waits_for, item.model) == ("queue", "model", MODEL)
        assert run_in(queue, second.run_id).why == "own_limit"
        assert (of(queue, alice).seats, of(queue, alice).waiting_calls) == (1, 1)
        assert (of(queue, alice).why, of(queue, bob).why) == ("own_limit", "queue")
        (model,) = queue.models
        assert (model.capacity, model.in_use) == (1, 1)
        assert (model.waiting_calls, model.waiting_users) == (2, 2)

    @pytest.mark.parametrize("how", ["fails", "is suspended"])
    async def test_waits_for_a_pool_that(
        self, how: str, stage: Stage, oversight: OversightDatabase, alice: Principal
    ) -> None:
        await stage.pools.declare([pool(capacity=1)])
        first, second = await stage.run_of(alice), await stage.run_of(alice)
        call = await stage.take(first)
        await stage.wait(second)
        if how == "fails":
            await stage.settle(first, call, failure="unreachable")
        else:
            await oversight.set_capacity("default", 0, ACT)
        queue = await seen(oversight)
        assert run_in(queue, second.run_id).why == "model_unavailable"
        assert of(queue, alice).why == "model_unavailable"
        (found,) = queue.pools
        if how == "fails":
            assert (found.state, found.reason) == ("failing", "unreachable")
            assert found.failing_since is not None

    async def test_of_somebody_without_seats(
        self, stage: Stage, oversight: OversightDatabase, alice: Principal
    ) -> None:
        await stage.pools.declare([pool(capacity=1)])
        await oversight.set_limits(alice.user_id, None, {"seats": 0}, ACT)
        run = await stage.run_of(alice)
        await stage.wait(run)
        queue = await seen(oversight)
        assert run_in(queue, run.run_id).why == "suspended"


class TestAPerson:
    async def test_is_shown_with_plan_weight_and_how_far_ahead_they_are(
        self, stage: Stage, oversight: OversightDatabase, alice: Principal, bob: Principal
    ) -> None:
        await stage.pools.declare([pool(capacity=2)])
        await oversight.set_plan("gold", {"weight": 4}, ACT)
        await oversight.set_limits(alice.user_id, "gold", {}, ACT)
        run = await stage.run_of(alice)
        call = await stage.take(run)
        await stage.settle(run, call, prompt=200, output=100)  # 400 tokens, over a weight of 4
        await one_run(stage, bob)
        queue = await seen(oversight)
        hers, his = of(queue, alice), of(queue, bob)
        assert (hers.plan, hers.weight, hers.lag) == ("gold", 4, 100)
        assert (his.plan, his.weight, his.lag) == (None, 1, 0)
        assert (hers.running, hers.why) == (1, None)

    async def test_who_waits_longest_comes_first_and_no_more_than_asked_for(
        self, stage: Stage, oversight: OversightDatabase, superuser: asyncpg.Connection
    ) -> None:
        people = [await sign_in(stage.tenants, f"person {n}") for n in range(4)]
        for hours, person in zip((2, 4, 1, 3), people, strict=True):
            run = await one_run(stage, person)
            await superuser.execute(
                "UPDATE runs SET due_at = due_at - make_interval(hours => $2) WHERE run_id = $1",
                *(run, hours),
            )
        queue = await seen(oversight, limit=3)
        expected = [people[n].user_id for n in (1, 3, 0)]
        assert [each.user_id for each in queue.users] == expected
        assert [each.user_id for each in queue.waiting] == expected
        assert queue.runs.queued == 4
        assert 4 * 3600 <= queue.users[0].longest_wait_seconds < 4 * 3600 + 60

    async def test_spread_of_virtual_time_is_that_of_people_in_line(
        self, stage: Stage, oversight: OversightDatabase, superuser: asyncpg.Connection
    ) -> None:
        await stage.pools.declare([pool(capacity=1)])
        people = [await sign_in(stage.tenants, f"person {n}") for n in range(3)]
        runs = [await stage.run_of(person) for person in people]
        await stage.take(runs[0])
        for run in runs[1:]:
            await stage.wait(run)
        await superuser.execute(
            "UPDATE model_users SET vtime = CASE user_id WHEN $1 THEN 250000 ELSE 1000000 END",
            people[1].user_id,
        )
        assert (await seen(oversight)).models[0].vtime_spread == 750


class TestAPool:
    async def test_counts_a_dead_workers_seat_as_cooling(
        self, stage: Stage, oversight: OversightDatabase, alice: Principal
    ) -> None:
        await stage.pools.declare([pool(capacity=2)])
        run = await stage.run_of(alice)
        await stage.take(run)
        await stage.dispatch.release_run(run, spend=True)
        await stage.seats.tend(60)
        (found,) = (await seen(oversight)).pools
        assert (found.in_use, found.cooling) == (0, 1)

    async def test_that_was_removed_is_shown_while_calls_are_in_flight_there(
        self, stage: Stage, oversight: OversightDatabase, alice: Principal
    ) -> None:
        await stage.pools.declare([pool("old")])
        run = await stage.run_of(alice)
        call = await stage.take(run)
        await stage.pools.declare([pool("new")])
        found = {each.pool: each.state for each in (await seen(oversight)).pools}
        assert found == {"new": "open", "old": "removed"}
        await stage.settle(run, call)
        assert [each.pool for each in (await seen(oversight)).pools] == ["new"]

    def test_is_shown_without_what_its_server_is_logged_in_with(self) -> None:
        facts: dict[str, Any] = {
            "pool": "default",
            "server": "http://me:hush@models.test:11434/ollama",
            "model": MODEL,
            "state": "failing",
            "reason": "unreachable",
            "failing_since": datetime.now(UTC) - timedelta(hours=1),
            "declared_capacity": 1,
            "set_capacity": None,
            "capacity": 1,
            "in_use": 0,
            "cooling": 0,
        }
        assert PoolView.model_validate(facts).server == "http://models.test:11434/ollama"
