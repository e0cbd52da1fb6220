"""Seats of a model with room for one call at a time, while workers die, drain and are stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from app.bench.chaos.client import Person
from app.bench.chaos.promises import Promise
from tests.crash.stage import Stage, new_thread
from tests.support.deployment import STEADY_LEASE
from tests.support.model_server import RecordedRequest, Script
from tests.support.processes import PATIENCE

COOLDOWN_SECONDS = 1.0
ONE_SEAT = {
    **STEADY_LEASE,
    "STOA_OLLAMA_CAPACITY": "1",
    "STOA_SEAT_COOLDOWN_SECONDS": str(COOLDOWN_SECONDS),
}
_LOOK_SECONDS = 0.01
HALF = Script(text="You said: hi", stall_at=1)


@dataclass
class Said:
    """A message, and what reads its answer."""

    person: Person
    run: Promise
    reading: asyncio.Task[None]

    async def state(self) -> str:
        """How the run stands."""
        state: str = (await self.person.ask("GET", self.run.location))["state"]
        return state


class Seats:
    """People who share one seat."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.model = stage.deployment.model

    async def say(self, text: str = "hi") -> Said:
        """Somebody new says something."""
        person = self.stage.person()
        run = await person.say(new_thread(), text)
        return Said(person, run, asyncio.create_task(person.read(run)))

    async def hold(self) -> tuple[Said, RecordedRequest]:
        """Somebody's answer stands half-way, and has the seat."""
        stalls = self.stage.deployment.stalls
        self.model.enqueue(HALF)
        said = await self.say()
        return said, await self.model.wait_for_stall(stalls + 1)

    async def wait_for_calls(self, seated: int, waiting: int) -> None:
        """Until so many calls have a seat, and so many wait for one."""
        sql = "SELECT count(seat), count(*) - count(seat) FROM model_calls"
        async with self.stage.deployment.superuser() as connection, asyncio.timeout(PATIENCE):
            while tuple(await connection.fetchrow(sql)) != (seated, waiting):  # noqa: ASYNC110 - rows
                await asyncio.sleep(_LOOK_SECONDS)

    async def assert_charged(self) -> None:
        """All that the model said to the end was charged, once, and no seat is taken."""
        await self.wait_for_calls(0, 0)
        async with asyncio.timeout(PATIENCE):
            # The model notes an end when the worker may have heard of it already.
            while not all(each.finished_at or each.disconnected_at for each in self.model.requests):  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_SECONDS)
        whole = [each for each in self.model.requests if each.finished_at is not None]
        async with self.stage.deployment.superuser() as connection:
            charged = await connection.fetchval("SELECT sum(output_tokens) FROM usage_hours")
        assert charged == sum(each.tokens_sent for each in whole)


@pytest.fixture
async def seats(stage: Stage) -> AsyncIterator[Seats]:
    if not stage.origins:
        await stage.open_web()
    async with stage.deployment.superuser() as connection:
        await connection.execute("DELETE FROM usage_hours")
    stage.deployment.model.requests.clear()
    yield Seats(stage)
    await stage.assert_whole()


class TestAWorkerThatIsKilledInMidAnswer:
    async def test_leaves_its_seat_to_the_next_after_its_lease_and_a_cool_down(
        self, seats: Seats
    ) -> None:
        deployment = seats.stage.deployment
        doomed, rescuer = await asyncio.gather(
            deployment.start_worker(**ONE_SEAT), deployment.prepare_worker(**ONE_SEAT)
        )
        holder, _ = await seats.hold()
        waiter = await seats.say()
        await seats.wait_for_calls(1, 1)
        async with deployment.superuser() as connection:
            await doomed.kill()
            seats.model.enqueue(HALF)
            await rescuer.let_go()
            over_since = await deployment.lease_over(doomed)
            next_one = await seats.model.wait_for_stall(2)
            seat = await connection.fetchrow(
                "SELECT granted_at, user_id FROM model_calls WHERE seat IS NOT NULL"
            )
            assert (seat["granted_at"] - over_since).total_seconds() >= COOLDOWN_SECONDS
            held_back = await connection.fetchval(
                "SELECT max(vtime) FROM model_users WHERE user_id <> $1", seat["user_id"]
            )
            assert held_back == 0
        seats.model.release(next_one)
        await asyncio.gather(holder.reading, waiter.reading)
        await seats.assert_charged()
        assert await rescuer.terminate() == 0


class TestASeatThatIsGivenBackInOneWorker:
    async def test_goes_to_a_call_that_waits_in_another_even_if_nobody_tells_it(
        self, seats: Seats
    ) -> None:
        deployment = seats.stage.deployment
        alone = {**ONE_SEAT, "STOA_WORKER_CONCURRENCY": "1"}
        workers = await asyncio.gather(*(deployment.start_worker(**alone) for _ in range(2)))
        for tell in (True, False):
            holder, stalled = await seats.hold()
            waiter = await seats.say()
            await seats.wait_for_calls(1, 1)
            if not tell:
                await _cut_off_listeners(seats)
            seats.model.release(stalled)
            await asyncio.gather(holder.reading, waiter.reading)
        await seats.assert_charged()
        await asyncio.gather(*(each.kill() for each in workers))


class TestACallThatWaitsForASeat:
    async def test_leaves_the_queue_when_its_run_is_cancelled(self, seats: Seats) -> None:
        worker = await seats.stage.deployment.start_worker(**ONE_SEAT)
        holder, stalled = await seats.hold()
        waiter = await seats.say()
        await seats.wait_for_calls(1, 1)
        await waiter.person.stop(waiter.run, action="interrupt", wait=True)
        await waiter.reading
        assert await waiter.state() == "cancelled"
        await seats.wait_for_calls(1, 0)
        seats.model.release(stalled)
        await holder.reading
        assert len(seats.model.requests) == 1
        await seats.assert_charged()
        assert await worker.terminate() == 0

    async def test_is_made_by_another_worker_when_its_own_drains(self, seats: Seats) -> None:
        deployment = seats.stage.deployment
        leaving, other = await asyncio.gather(
            deployment.start_worker(**ONE_SEAT, STOA_DRAIN_SECONDS="0.5"),
            deployment.prepare_worker(**ONE_SEAT),
        )
        holder, _ = await seats.hold()
        waiter = await seats.say()
        await seats.wait_for_calls(1, 1)
        assert await leaving.terminate() == 0, leaving.output
        await seats.wait_for_calls(0, 0)
        await other.let_go()
        await asyncio.gather(holder.reading, waiter.reading)
        assert await other.terminate() == 0


async def _cut_off_listeners(seats: Seats) -> None:
    async with seats.stage.deployment.superuser() as connection:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'stoa signals' AND datname = current_database()"
        )
