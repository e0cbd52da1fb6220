"""Seats, leases and queue agree, and where they do not it is said and put in order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from uuid import UUID, uuid4

import asyncpg
import pytest

from tenancy.principal import ClaimedRun, Principal
from tenancy.reconcile.facts import Disposition, Kind
from tenancy.reconcile.passing import reconcile
from tenancy.reconcile.summary import Summary
from tests.integration.scheduler.conftest import COOLDOWN, Stage, pool
from tests.support.tenancy import TestDatabase, make_thread, queue_run

Scene = tuple[Stage, ClaimedRun, UUID, UUID]
"""A stage with one seat, a run, its call in flight and its call that waits."""


@pytest.fixture
async def scene(stage: Stage, alice: Principal) -> Scene:
    await stage.pools.declare([pool()])
    run = await stage.run_of(alice)
    return stage, run, await stage.take(run), await stage.wait(run)


async def worker_dies(scene: Scene) -> UUID:
    """Its worker is dead, and no tender came by; its run goes back."""
    stage, _, held, waiting = scene
    await stage.settle(scene[1], waiting, 0, 0)
    await stage.lose_worker()
    await stage.age("granted_at", COOLDOWN + 5)
    return held


async def call_is_left(scene: Scene) -> UUID:
    """A call waits whose worker is dead."""
    stage, run, held, waiting = scene
    await stage.settle(run, held)
    await stage.superuser.execute("UPDATE pools SET state = 'failing', failing_since = now()")
    left = (await stage.ask(run))[0]
    await stage.settle(run, waiting, 0, 0)
    await stage.lose_worker()
    await stage.age("asked_at", 5)
    return left


async def flag_is_wrong(scene: Scene) -> UUID:
    """A seat is free, and the person who waits is not in line."""
    stage, _, held, waiting = scene
    await stage.superuser.execute("DELETE FROM model_calls WHERE call_id = $1", held)
    await stage.superuser.execute("UPDATE model_users SET eligible = false")
    return waiting


async def seat_is_idle(scene: Scene) -> UUID:
    """A seat is free, and nobody gave it to the person in line."""
    stage, _, held, waiting = scene
    await stage.superuser.execute("DELETE FROM model_calls WHERE call_id = $1", held)
    await stage.superuser.execute("UPDATE model_users SET eligible = true")
    return waiting


async def queue_sleeps(scene: Scene) -> UUID:
    """A run could be claimed, and no claim would look."""
    stage, run, *_ = scene
    person = Principal(run.user_id, None)  # type: ignore[arg-type]
    await queue_run(stage.tenants, person, await make_thread(stage.tenants, person))
    await stage.superuser.execute("UPDATE run_queues SET claimable = false")
    return run.user_id


async def alarm_is_lost(scene: Scene) -> UUID:
    """A scheduled run will be due, and nobody would notice."""
    stage, run, *_ = scene
    person = Principal(run.user_id, None)  # type: ignore[arg-type]
    thread = await make_thread(stage.tenants, person)
    await queue_run(stage.tenants, person, thread, after_seconds=3600)
    await stage.superuser.execute("UPDATE run_queues SET claimable = false, wake_at = NULL")
    return run.user_id


async def queue_is_missing(scene: Scene) -> UUID:
    """A run waits, of a person without a queue."""
    user_id = await queue_sleeps(scene)
    await scene[0].superuser.execute(
        "SET session_replication_role = replica;"  # no reference is looked at
        "DELETE FROM run_queues; RESET session_replication_role"
    )
    return user_id


FAULTS: dict[str, Callable[[Scene], Awaitable[UUID]]] = {
    "seat_kept": worker_dies,
    "call_left": call_is_left,
    "call_passed": flag_is_wrong,
    "seat_idle": seat_is_idle,
    "queue_asleep": queue_sleeps,
    "queue_asleep ": alarm_is_lost,
    "queue_missing": queue_is_missing,
}


async def one_pass(database: TestDatabase, *, dry_run: bool = False) -> Summary:
    return await reconcile(
        database.settings("dispatch"), cooldown_seconds=COOLDOWN, dry_run=dry_run
    )


class TestADisagreement:
    @pytest.mark.parametrize("kind", FAULTS)
    async def test_is_found_shown_and_put_in_order(
        self, database: TestDatabase, scene: Scene, kind: str
    ) -> None:
        stage = scene[0]
        assert await stage.disagreements() == []
        subject = await FAULTS[kind](scene)
        assert await stage.disagreements() == [(kind.strip(), subject)]
        dry = await one_pass(database, dry_run=True)
        assert dry.changed
        assert await stage.disagreements() == [(kind.strip(), subject)]
        summary = await one_pass(database)
        (finding,) = [each for each in summary.findings if each.disagreement is not None]
        assert (finding.disagreement, finding.id) == (kind.strip(), subject)
        assert finding.kind is (Kind.QUEUE if kind.startswith("queue") else Kind.CALL)
        assert finding.verdict.disposition is Disposition.REPAIRED
        assert await stage.disagreements() == []
        assert not any(each.disagreement for each in (await one_pass(database)).findings)

    async def test_about_a_seat_that_two_have_is_shown_and_left_to_a_person(
        self, database: TestDatabase, scene: Scene
    ) -> None:
        stage, run, held, waiting = scene
        # What the index forbids, and a restored backup may hold.
        await stage.superuser.execute("DROP INDEX model_calls_seated")
        await stage.superuser.execute(
            "UPDATE model_calls SET pool = 'default', seat = 1, granted_at = now(),"
            " taken_at = now()"
        )
        summary = await one_pass(database)
        (finding,) = [each for each in summary.findings if each.disagreement is not None]
        assert finding.disagreement == "seat_shared"
        assert finding.id == max(held, waiting)
        assert finding.verdict.disposition is Disposition.PRESERVED
        for call in (held, waiting):
            await stage.settle(run, call)

    async def test_about_a_seat_beyond_the_capacity_is_shown_and_its_call_let_end(
        self, database: TestDatabase, scene: Scene
    ) -> None:
        stage, run, held, waiting = scene
        await stage.settle(run, waiting, 0, 0)
        await stage.superuser.execute(
            "INSERT INTO seats VALUES ('default', 2); UPDATE model_calls SET seat = 2"
        )
        assert await stage.disagreements() == [("seat_too_many", held)]
        await one_pass(database)
        assert (await stage.settle(run, held)).first


class TestLimitsThatNobodyCanHave:
    @pytest.mark.parametrize(
        "limits",
        [
            '{"weight": 0}',
            '{"weight": -1}',
            '{"weight": 1e-300}',
            '{"weight": 1e300}',
            '{"weight": "NaN"}',
            '{"seats": -1}',
            '{"seats": 1.5}',
            '{"seats": "two"}',
            '{"running": -1}',
            '{"running": [4]}',
            '{"requests_per_minute": 0}',
            '{"tokens_per_day": -1}',
            "[]",
        ],
    )
    async def test_are_refused_by_the_database_too(
        self, stage: Stage, alice: Principal, limits: str
    ) -> None:
        """One that a function could do nothing with would keep everybody from a seat."""
        for refused in (
            stage.limit(alice, limits),
            stage.superuser.execute("INSERT INTO plans VALUES ('p', $1::text::jsonb)", limits),
        ):
            with pytest.raises((asyncpg.CheckViolationError, asyncpg.DataError)):
                await refused
        assert await stage.value("SELECT count(*) FROM user_limits") == 0


class TestACapOfNothing:
    async def test_suspends_and_lifted_again_goes_on(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        await stage.pools.declare([pool(capacity=2)])
        await stage.limit(alice, '{"seats": 0, "running": 0}')
        run = ClaimedRun(alice.user_id, uuid4(), 1)
        thread = await make_thread(stage.tenants, alice)
        await queue_run(stage.tenants, alice, thread)
        assert await stage.dispatch.claim_runs(stage.worker, 5, {}, "") == []
        await self.lift(stage, alice, '{"seats": 0}')
        (run,) = await stage.dispatch.claim_runs(stage.worker, 5, {}, "")
        waiting = await stage.wait(run)
        assert await stage.tend() == ()
        assert await stage.disagreements() == []
        assert await self.lift(stage, alice, '{"seats": 1}') == [waiting]
        assert await stage.outcome(run, waiting) == "taken"

    async def lift(self, stage: Stage, person: Principal, limits: str) -> list[UUID]:
        granted = await stage.value(
            "SELECT granted"
            " FROM dispatch.set_limits($1, NULL, $2::text::jsonb, NULL, 'somebody', 'a test')",
            *(person.user_id, limits),
        )
        return list(granted)
