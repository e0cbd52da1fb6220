"""What an operator sets is in force at once: who waits is served, and nobody is left asleep."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import asyncpg
import pytest

from tenancy.database.signals import RUN_QUEUED, SEAT_GRANTED, USER_CHANGED
from tenancy.errors import InvalidInput, PlanInUse, PlanNotFound, PoolNotFound
from tenancy.oversight.people import UserStates
from tenancy.principal import Principal
from tenancy.scheduler.oversight import OversightDatabase
from tests.integration.admin.conftest import ACT
from tests.integration.scheduler.conftest import Stage, pool
from tests.support.tenancy import MODEL, TestDatabase, claim_runs, make_thread, queue_run

CLAIMING = "SELECT pg_advisory_xact_lock(hashtextextended('stoa.claim_runs', 0))"
SOMEBODY_WAITS = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND wait_event_type = 'Lock'"
)
SOMEBODY_WAITS_FOR_CLAIMS = (
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


@pytest.fixture
async def heard(database: TestDatabase) -> AsyncIterator[asyncio.Queue[tuple[str, str]]]:
    """What workers are told."""
    said: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    connection = await database.connect("service")

    def hear(_connection: object, _pid: int, channel: str, payload: object) -> None:
        said.put_nowait((channel, str(payload)))

    try:
        for channel in (RUN_QUEUED, SEAT_GRANTED, USER_CHANGED):
            await connection.add_listener(channel, hear)
        yield said
    finally:
        await connection.close()


async def queue_one(stage: Stage, person: Principal) -> None:
    await queue_run(stage.tenants, person, await make_thread(stage.tenants, person))


async def claimed(stage: Stage) -> int:
    return len(await claim_runs(stage.dispatch, stage.worker, 10))


class TestASuspendedAccount:
    async def test_has_nothing_begun_until_it_is_resumed_and_everybody_is_told(
        self,
        stage: Stage,
        database: TestDatabase,
        heard: asyncio.Queue[tuple[str, str]],
        alice: Principal,
    ) -> None:
        await queue_one(stage, alice)
        states = UserStates(database.settings("dispatch"))
        changed = (USER_CHANGED, str(alice.user_id))
        try:
            await states.set(alice.user_id, "suspended", ACT)
            assert await heard.get() == changed
            assert await claimed(stage) == 0
            await states.set(alice.user_id, "active", ACT)
        finally:
            await states.close()
        assert [await heard.get(), await heard.get()] == [changed, (RUN_QUEUED, "")]
        assert await claimed(stage) == 1


class TestASuspendedPerson:
    async def test_is_served_again_once_their_own_limit_is_lifted(
        self, stage: Stage, oversight: OversightDatabase, alice: Principal
    ) -> None:
        await queue_one(stage, alice)
        await oversight.set_limits(alice.user_id, None, {"running": 0}, ACT)
        assert await claimed(stage) == 0
        await oversight.set_limits(alice.user_id, None, {"running": 1}, ACT)
        assert await claimed(stage) == 1

    async def test_is_served_again_once_it_is_cleared(
        self, stage: Stage, oversight: OversightDatabase, alice: Principal
    ) -> None:
        await queue_one(stage, alice)
        await oversight.set_limits(alice.user_id, None, {"running": 0}, ACT)
        assert await claimed(stage) == 0
        await oversight.clear_limits(alice.user_id, ACT)
        assert await claimed(stage) == 1

    async def test_is_served_again_once_their_plan_allows_it(
        self, stage: Stage, oversight: OversightDatabase, alice: Principal, bob: Principal
    ) -> None:
        await oversight.set_plan("none-at-all", {"running": 0}, ACT)
        for person in (alice, bob):
            await queue_one(stage, person)
            await oversight.set_limits(person.user_id, "none-at-all", {}, ACT)
        assert await claimed(stage) == 0
        await oversight.set_plan("none-at-all", {"running": 5}, ACT)
        assert await claimed(stage) == 2

    async def test_is_served_again_once_the_default_plan_is_gone(
        self, stage: Stage, oversight: OversightDatabase, alice: Principal
    ) -> None:
        await oversight.set_plan("default", {"running": 0}, ACT)
        await queue_one(stage, alice)
        assert await claimed(stage) == 0
        await oversight.delete_plan("default", ACT)
        assert await claimed(stage) == 1

    async def test_is_served_though_a_claim_by_the_old_limit_ends_meanwhile(
        self,
        stage: Stage,
        oversight: OversightDatabase,
        superuser: asyncpg.Connection,
        database: TestDatabase,
        alice: Principal,
    ) -> None:
        await queue_one(stage, alice)
        await oversight.set_limits(alice.user_id, None, {"running": 0}, ACT)
        claim = await database.connect("owner")
        try:
            async with claim.transaction():
                await claim.execute(CLAIMING)
                await claim.execute("UPDATE run_queues SET claimable = false")
                lifting = asyncio.create_task(oversight.clear_limits(alice.user_id, ACT))
                while not (  # noqa: ASYNC110 - the server tells nobody
                    lifting.done() or await superuser.fetchval(SOMEBODY_WAITS_FOR_CLAIMS)
                ):
                    await asyncio.sleep(0.005)
            await lifting
        finally:
            await claim.close()
        assert await claimed(stage) == 1


class TestASeat:
    async def test_is_given_at_once_to_whom_only_their_own_limit_held_back(
        self,
        stage: Stage,
        oversight: OversightDatabase,
        heard: asyncio.Queue[tuple[str, str]],
        alice: Principal,
    ) -> None:
        await stage.pools.declare([pool(capacity=3)])
        await oversight.set_limits(alice.user_id, None, {"seats": 1}, ACT)
        assert await heard.get() == (RUN_QUEUED, "")
        first, second = await stage.run_of(alice), await stage.run_of(alice)
        await stage.take(first)
        call = await stage.wait(second)
        await oversight.set_limits(alice.user_id, None, {"seats": 2}, ACT)
        assert await heard.get() == (RUN_QUEUED, "")
        assert await heard.get() == (SEAT_GRANTED, str(call))
        assert await stage.outcome(second, call) == "taken"

    async def test_is_given_when_the_plan_of_the_one_who_waits_changes(
        self, stage: Stage, oversight: OversightDatabase, alice: Principal
    ) -> None:
        await stage.pools.declare([pool(capacity=3)])
        await oversight.set_plan("small", {"seats": 0}, ACT)
        await oversight.set_limits(alice.user_id, "small", {}, ACT)
        run = await stage.run_of(alice)
        call = await stage.wait(run)
        await oversight.set_plan("small", {"seats": None}, ACT)
        assert await stage.outcome(run, call) == "taken"

    async def test_is_given_to_a_call_that_asked_by_the_old_limit_meanwhile(
        self,
        stage: Stage,
        oversight: OversightDatabase,
        database: TestDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        await stage.pools.declare([pool(capacity=3)])
        await oversight.set_limits(alice.user_id, None, {"seats": 0}, ACT)
        run, call = await stage.run_of(alice), uuid4()
        asking = await database.connect("owner")
        try:
            async with asking.transaction():
                await asking.execute(
                    "SELECT outcome FROM dispatch.take_seat($1, $2, $3, $4, $5, $6, '{}')",
                    *(alice.user_id, call, run.run_id, run.fence, stage.worker, MODEL),
                )
                lifting = asyncio.create_task(oversight.clear_limits(alice.user_id, ACT))
                while not (  # noqa: ASYNC110 - the server tells nobody
                    lifting.done() or await superuser.fetchval(SOMEBODY_WAITS)
                ):
                    await asyncio.sleep(0.005)
            await lifting
        finally:
            await asking.close()
        assert await stage.outcome(run, call) == "taken"

    async def test_stays_with_who_has_it_when_their_limit_falls(
        self, stage: Stage, oversight: OversightDatabase, alice: Principal, bob: Principal
    ) -> None:
        await stage.pools.declare([pool(capacity=3)])
        runs = [await stage.run_of(alice) for _ in range(3)]
        calls = [await stage.take(run) for run in runs[:2]]
        waiting = await stage.wait(runs[2])
        await oversight.set_limits(alice.user_id, None, {"seats": 1}, ACT)
        assert (await stage.settle(runs[0], calls[0])).granted == ()
        assert (await stage.settle(runs[1], calls[1])).granted == (waiting,)


class TestAPoolsCapacity:
    async def test_gives_out_more_seats_at_once(
        self,
        stage: Stage,
        oversight: OversightDatabase,
        heard: asyncio.Queue[tuple[str, str]],
        alice: Principal,
        bob: Principal,
    ) -> None:
        await stage.pools.declare([pool(capacity=1)])
        run, other = await stage.run_of(alice), await stage.run_of(bob)
        await stage.take(run)
        call = await stage.wait(other)
        await oversight.set_capacity("default", 2, ACT)
        assert [await heard.get(), await heard.get()] == [
            (RUN_QUEUED, ""),
            (SEAT_GRANTED, str(call)),
        ]
        assert await stage.outcome(other, call) == "taken"

    async def test_lets_calls_in_flight_end_when_it_falls(
        self, stage: Stage, oversight: OversightDatabase, alice: Principal, bob: Principal
    ) -> None:
        await stage.pools.declare([pool(capacity=3)])
        runs = [await stage.run_of(person) for person in (alice, bob, alice, bob)]
        calls = [await stage.take(run) for run in runs[:3]]
        waiting = await stage.wait(runs[3])
        await oversight.set_capacity("default", 1, ACT)
        (found,) = await oversight.pools()
        assert (found["capacity"], found["declared_capacity"], found["in_use"]) == (1, 3, 3)
        assert (await stage.settle(runs[0], calls[0])).granted == ()
        assert (await stage.settle(runs[1], calls[1])).granted == ()
        assert (await stage.settle(runs[2], calls[2])).granted == (waiting,)

    async def test_of_none_suspends_it_until_it_is_as_the_settings_say(
        self, stage: Stage, oversight: OversightDatabase, alice: Principal
    ) -> None:
        await stage.pools.declare([pool(capacity=1)])
        await oversight.set_capacity("default", 0, ACT)
        run = await stage.run_of(alice)
        call = await stage.wait(run)
        await oversight.set_capacity("default", None, ACT)
        assert await stage.outcome(run, call) == "taken"

    async def test_stays_set_when_workers_declare_their_pools_again(
        self, stage: Stage, oversight: OversightDatabase
    ) -> None:
        await stage.pools.declare([pool(capacity=4)])
        await oversight.set_capacity("default", 2, ACT)
        await stage.pools.declare([pool(capacity=8)])
        (found,) = await oversight.pools()
        assert (found["capacity"], found["set_capacity"], found["declared_capacity"]) == (2, 2, 8)

    async def test_cannot_be_set_where_there_is_no_pool(
        self, stage: Stage, oversight: OversightDatabase
    ) -> None:
        await stage.pools.declare([pool("gone")])
        await stage.pools.declare([pool("here")])
        with pytest.raises(PoolNotFound):
            await oversight.set_capacity("gone", 1, ACT)
        assert [each["pool"] for each in await oversight.pools()] == ["here"]


class TestAPlan:
    async def test_that_somebody_has_is_not_deleted(
        self, oversight: OversightDatabase, alice: Principal
    ) -> None:
        await oversight.set_plan("gold", {"weight": 4}, ACT)
        await oversight.set_limits(alice.user_id, "gold", {}, ACT)
        with pytest.raises(PlanInUse):
            await oversight.delete_plan("gold", ACT)
        await oversight.set_limits(alice.user_id, None, {}, ACT)
        await oversight.delete_plan("gold", ACT)
        with pytest.raises(PlanNotFound):
            await oversight.delete_plan("gold", ACT)
        with pytest.raises(InvalidInput, match="no plan of that name"):
            await oversight.set_limits(alice.user_id, "gold", {}, ACT)

    async def test_that_is_deleted_while_somebody_is_given_it_is_theirs_or_gone(
        self, oversight: OversightDatabase, alice: Principal
    ) -> None:
        for _ in range(10):
            await oversight.set_plan("brief", {}, ACT)
            ended = await asyncio.gather(
                oversight.set_limits(alice.user_id, "brief", {}, ACT),
                oversight.delete_plan("brief", ACT),
                return_exceptions=True,
            )
            assert [type(each) for each in ended] in (
                [type(None), PlanInUse],
                [InvalidInput, type(None)],
            )
            await oversight.clear_limits(alice.user_id, ACT)
