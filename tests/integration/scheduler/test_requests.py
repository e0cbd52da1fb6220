"""A minute's worth of requests may come at once; then one when the next is due."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from tenancy.database.tenant import TenantDatabase
from tenancy.principal import Principal
from tenancy.scheduler.requests import Admission, admit_request
from tests.integration.scheduler.conftest import Stage
from tests.support.tenancy import TestDatabase

REWIND = "UPDATE request_rates SET arrival = arrival - make_interval(secs => $1)"


async def admit(door: TenantDatabase, person: Principal, a_minute: float | None) -> Admission:
    """One request of a person who may make so many a minute."""
    return await admit_request(door, person, {"requests_per_minute": a_minute})


@pytest.fixture
async def processes(database: TestDatabase) -> AsyncIterator[list[TenantDatabase]]:
    """Two web processes' doors."""
    doors = [TenantDatabase(database.settings("service", pool_size=8)) for _ in range(2)]
    try:
        yield doors
    finally:
        for door in doors:
            await door.close()


class TestAMinutesWorth:
    @pytest.mark.parametrize("a_minute", [1, 7, 60])
    async def test_comes_at_once_and_not_one_more(
        self, stage: Stage, alice: Principal, a_minute: int
    ) -> None:
        for n in range(a_minute):
            admission = await self.after(n, stage, alice, a_minute)
            assert admission.admitted
            assert admission.remaining == a_minute - n - 1
        refused = await self.after(a_minute, stage, alice, a_minute)
        assert not refused.admitted
        assert refused.remaining == 0

    async def after(self, n: int, stage: Stage, person: Principal, a_minute: int) -> Admission:
        """One more as if so many had been made just now; anew where the next was due meanwhile."""
        spacing = 60_000_000 // a_minute / 1_000_000
        while True:
            began = await stage.value("SELECT clock_timestamp()")
            await stage.superuser.execute(
                "UPDATE request_rates SET arrival = $1::timestamptz + make_interval(secs => $2)",
                *(began, n * spacing),
            )
            admission = await admit(stage.tenants, person, a_minute)
            took = await stage.value("SELECT clock_timestamp()") - began
            if took < timedelta(seconds=spacing / 2):
                return admission

    async def test_over_two_processes_at_once_is_never_exceeded(
        self, processes: list[TenantDatabase], alice: Principal
    ) -> None:
        asked = [admit(door, alice, 5) for door in processes for _ in range(12)]
        admissions = await asyncio.gather(*asked)
        told = sorted(each.remaining or 0 for each in admissions if each.admitted)
        assert len(told) == 5
        # Who asks before somebody else and is let in after them is told of fewer than are left.
        assert all(0 <= remaining <= most for most, remaining in enumerate(told))

    async def test_is_each_persons_own(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        assert (await admit(stage.tenants, alice, 1)).admitted
        assert not (await admit(stage.tenants, alice, 1)).admitted
        assert (await admit(stage.tenants, bob, 1)).admitted

    async def test_is_what_a_limit_of_their_own_says(self, stage: Stage, alice: Principal) -> None:
        await stage.limit(alice, '{"requests_per_minute": 2}')
        admissions = [await admit(stage.tenants, alice, 1000) for _ in range(3)]
        assert [each.admitted for each in admissions] == [True, True, False]
        assert admissions[0].quota == 2

    async def test_without_a_limit_is_not_counted(self, stage: Stage, alice: Principal) -> None:
        admissions = [await admit(stage.tenants, alice, None) for _ in range(3)]
        assert all(each.admitted and each.remaining is None for each in admissions)
        assert await stage.value("SELECT count(*) FROM request_rates") == 0


class TestOneThatIsRefused:
    async def test_is_let_in_after_the_time_it_was_told(
        self, stage: Stage, alice: Principal
    ) -> None:
        for _ in range(2):
            await admit(stage.tenants, alice, 2)
        refused = await admit(stage.tenants, alice, 2)
        assert refused.retry_seconds is not None
        # One is due each half a minute: what else goes on takes less than the rest of it.
        assert 10 < refused.retry_seconds <= 30
        await stage.superuser.execute(REWIND, refused.retry_seconds - 25)
        assert not (await admit(stage.tenants, alice, 2)).admitted
        await stage.superuser.execute(REWIND, 25)
        assert (await admit(stage.tenants, alice, 2)).admitted

    async def test_is_not_counted(self, stage: Stage, alice: Principal) -> None:
        await admit(stage.tenants, alice, 1)
        before = await stage.value("SELECT arrival FROM request_rates")
        assert not (await admit(stage.tenants, alice, 1)).admitted
        assert await stage.value("SELECT arrival FROM request_rates") == before


class TestASteadyRate:
    async def test_is_let_in_for_ever(self, stage: Stage, alice: Principal) -> None:
        for _ in range(60):
            assert (await admit(stage.tenants, alice, 30)).admitted
            await stage.superuser.execute(REWIND, 2)

    async def test_that_is_a_little_faster_is_refused_now_and_then(
        self, stage: Stage, alice: Principal
    ) -> None:
        admitted = 0
        for _ in range(60):
            admitted += (await admit(stage.tenants, alice, 2)).admitted
            await stage.superuser.execute(REWIND, 24)
        # Two at once, and then each half a minute one: 60 * 24 seconds make 48.
        assert 49 <= admitted <= 51


class TestAClockThatIsSetBack:
    async def test_keeps_nobody_out_longer_than_their_next_is_due(
        self, stage: Stage, alice: Principal
    ) -> None:
        await admit(stage.tenants, alice, 6)
        await stage.superuser.execute(REWIND, -3600)
        refused = await admit(stage.tenants, alice, 6)
        assert not refused.admitted
        assert refused.retry_seconds == pytest.approx(10, abs=0.5)
        assert refused.reset_seconds == pytest.approx(60, abs=0.5)
