"""A minute's worth of requests may come at once; then one when the next is due."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

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
        # At this rate not one comes to be due while they are made.
        for n in range(1, a_minute + 1):
            admission = await admit(stage.tenants, alice, a_minute)
            assert admission.admitted
            if n < a_minute:
                await self.stop_the_clock(stage, n * 60 / a_minute)
            assert admission.remaining == pytest.approx(a_minute - n, abs=0)
        await self.stop_the_clock(stage, 60)
        refused = await admit(stage.tenants, alice, a_minute)
        assert not refused.admitted
        assert refused.remaining == 0

    async def stop_the_clock(self, stage: Stage, used_seconds: float) -> None:
        """As if no time had passed since the first."""
        await stage.superuser.execute(
            "UPDATE request_rates SET arrival = least(arrival + interval '1 second',"
            " clock_timestamp() + make_interval(secs => $1))",
            used_seconds,
        )

    async def test_over_two_processes_at_once_is_never_exceeded(
        self, processes: list[TenantDatabase], alice: Principal
    ) -> None:
        asked = [admit(door, alice, 5) for door in processes for _ in range(12)]
        admissions = await asyncio.gather(*asked)
        assert sum(each.admitted for each in admissions) == 5
        assert {each.remaining for each in admissions if each.admitted} == {0, 1, 2, 3, 4}

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
        for _ in range(6):
            await admit(stage.tenants, alice, 6)
        refused = await admit(stage.tenants, alice, 6)
        assert refused.retry_seconds is not None
        assert 5 < refused.retry_seconds <= 10
        await stage.superuser.execute(REWIND, refused.retry_seconds - 4)
        assert not (await admit(stage.tenants, alice, 6)).admitted
        await stage.superuser.execute(REWIND, 4)
        assert (await admit(stage.tenants, alice, 6)).admitted

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
            admitted += (await admit(stage.tenants, alice, 10)).admitted
            await stage.superuser.execute(REWIND, 4.8)
        # Ten at once, and then each six seconds one: 60 * 4.8 seconds make 48.
        assert 57 <= admitted <= 59


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
