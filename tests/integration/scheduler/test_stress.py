"""Many workers at once, leases that run out in the middle: no cap is broken and nothing is lost."""

from __future__ import annotations

import asyncio
import contextlib
import random
from uuid import UUID, uuid4

import pytest

from tenancy.database.crossing import DispatchDatabase
from tenancy.errors import LeaseLost
from tenancy.principal import ClaimedRun
from tenancy.scheduler.seats import SeatDatabase
from tests.integration.scheduler.conftest import Stage, pool
from tests.support.tenancy import MODEL, TestDatabase, make_thread, queue_run, sign_in

WORKERS, PEOPLE, CAPACITY, MOST_SEATS = 24, 8, 16, 3
LEASE_SECONDS = 0.04
LIVES = 6
"""How often each worker begins anew."""
COOLDOWN_SECONDS = 0.02
TAKE_UP_SECONDS = 0.05
OVER = """
SELECT (SELECT count(*) FROM model_calls WHERE seat IS NOT NULL) > $1
  OR EXISTS (
    SELECT 1 FROM model_calls WHERE seat IS NOT NULL GROUP BY user_id HAVING count(*) > $2
  )
"""


class Crowd:
    """Workers that claim runs and make calls, of which some die in the middle."""

    def __init__(self, seats: SeatDatabase, dispatch: DispatchDatabase, seed: int) -> None:
        self._seats = seats
        self._dispatch = dispatch
        self._random = random.Random(seed)
        self.charged = 0
        self.lost = 0

    async def work(self) -> None:
        for _ in range(LIVES):
            worker = uuid4()
            dies = self._random.random() < 0.5  # its lease runs out, whatever it is at
            lease_seconds = LEASE_SECONDS if dies else 60
            await self._dispatch.register_worker(worker, "host.test", 1, lease_seconds)
            with contextlib.suppress(LeaseLost):
                for run in await self._dispatch.claim_runs(worker, 2, {"running": 6}, MODEL):
                    await self._call(worker, run)
            if not dies:
                await self._dispatch.retire_worker(worker)

    async def _call(self, worker: UUID, run: ClaimedRun) -> None:
        call = uuid4()
        asked = await self._seats.take(run, call, worker, MODEL, {})
        for _ in range(20):
            if asked.outcome != "waiting":
                break
            await asyncio.sleep(0.002)
            asked = await self._seats.take_up(run.user_id, call)
        if asked.outcome == "taken" and self._random.random() < 0.3:
            self.lost += 1  # it forgets what it had
            return
        settled = await self._seats.settle(run.user_id, call, MODEL, 10, 5)
        self.charged += 15 * (settled.first and asked.outcome == "taken")

    async def tend(self) -> None:
        """A reaper and a tender."""
        while True:
            await self._dispatch.reap_expired_leases()
            await self._seats.tend(COOLDOWN_SECONDS, TAKE_UP_SECONDS)
            await asyncio.sleep(0.005)


class TestManyWorkers:
    @pytest.mark.timeout(120)
    async def test_break_no_cap_lose_no_seat_and_wait_for_each_other_in_no_ring(
        self, database: TestDatabase, stage: Stage
    ) -> None:
        await stage.pools.declare([pool("one", CAPACITY // 2), pool("two", CAPACITY // 2)])
        crowd = [await sign_in(stage.tenants, f"person {n}") for n in range(PEOPLE)]
        for person in crowd:
            await stage.limit(person, f'{{"seats": {MOST_SEATS}}}')
            for _ in range(6):
                await queue_run(stage.tenants, person, await make_thread(stage.tenants, person))
        seats = SeatDatabase(database.settings("dispatch", pool_size=WORKERS))
        dispatch = DispatchDatabase(database.settings("dispatch", pool_size=WORKERS))
        workers = Crowd(seats, dispatch, seed=random.randrange(2**32))
        tending = [asyncio.create_task(workers.tend()) for _ in range(2)]
        working = asyncio.gather(*(workers.work() for _ in range(WORKERS)))
        samples = 0
        while not working.done():
            assert not await stage.value(OVER, CAPACITY, MOST_SEATS)
            samples += 1
        await working
        assert samples > 20
        assert workers.charged
        assert workers.lost
        # Time goes on: all that was left comes back, and is charged for once or not at all.
        while await stage.value("SELECT count(*) FROM model_calls"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        for task in tending:
            task.cancel()
        assert not any(
            isinstance(each, Exception)
            for each in await asyncio.gather(*tending, return_exceptions=True)
        )
        used = "SELECT coalesce(sum(prompt_tokens + output_tokens), 0) FROM usage_hours"
        assert await stage.value(used) >= workers.charged
        await stage.superuser.execute("SELECT pg_stat_force_next_flush()")
        deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        assert await stage.value(deadlocks) == 0
        await seats.close()
        await dispatch.close()
