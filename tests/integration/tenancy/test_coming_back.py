"""Whoever left and comes back is somebody new, with what was left of their budget and no more."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from tenancy.database.tenant import TenantDatabase
from tenancy.errors import TooManyReturns, UserUnavailable
from tenancy.identity.directory import UserDirectory
from tenancy.principal import Principal
from tests.support.leaving import Leaving, leaving_of
from tests.support.tenancy import TestDatabase, identity, make_thread, set_user_state

pytestmark = pytest.mark.usefixtures("whole_day")

HASH = b"keyed hash of the identity"
LONG = 30 * 86400.0


@pytest.fixture
async def leaving(database: TestDatabase, tenants: TenantDatabase) -> AsyncIterator[Leaving]:
    async with leaving_of(database, tenants) as what:
        yield what


async def leave(leaving: Leaving, person: Principal, seconds: float = LONG) -> None:
    """Leave, with a tombstone for so long."""
    job = await leaving.begin(person)
    await leaving.erasures.record_tombstones(job.erasure_id, b"user", [HASH], "k1", seconds)
    assert await leaving.erasures.note_usage(job)
    await leaving.delete(person)


async def come_back(tenants: TenantDatabase, hashes: list[bytes] | None = None) -> Principal:
    """Sign in as Alice, as a service does that knows what tombstones are made of."""
    known = [b"of another key", HASH] if hashes is None else hashes
    return await UserDirectory(tenants, lambda _: known).principal(identity("alice"))


async def use(
    superuser: asyncpg.Connection, person: Principal, hour: datetime, tokens: int
) -> None:
    await superuser.execute(
        "INSERT INTO usage_hours (user_id, hour, model, prompt_tokens, output_tokens)"
        " VALUES ($1, $2, 'm', $3, 1)",
        *(person.user_id, hour, tokens - 1),
    )


async def spent(superuser: asyncpg.Connection, person: Principal) -> tuple[int, int]:
    """What counts of the day's budget and of the month's."""
    row = await superuser.fetchrow(
        "SELECT tenant.tokens_since($1, date_trunc('day', now(), 'UTC')),"
        " tenant.tokens_since($1, date_trunc('month', now(), 'UTC'))",
        person.user_id,
    )
    return tuple(row)


async def left_before(superuser: asyncpg.Connection, times: int) -> None:
    """Have Alice's last time have been so many."""
    await superuser.execute(
        "WITH last AS (SELECT * FROM tombstones LIMIT 1), each AS ("
        "  INSERT INTO erasures (erasure_id, requested_by, step, verified_at, ended_at, receipt)"
        "  SELECT gen_random_uuid(), 'person', 'done', now(), now(), 'signed'"
        "  FROM generate_series(1, $1)"
        "  RETURNING erasure_id)"
        " INSERT INTO tombstones (erasure_id, identity_hash, user_hash, key_id, expires_at)"
        " SELECT each.erasure_id, identity_hash, user_hash, key_id, expires_at FROM last, each",
        times,
    )


class TestComingBack:
    async def test_is_somebody_new_who_has_spent_what_they_spent(
        self,
        tenants: TenantDatabase,
        superuser: asyncpg.Connection,
        leaving: Leaving,
        alice: Principal,
    ) -> None:
        now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
        await use(superuser, alice, now, 70)
        await use(superuser, alice, now.replace(day=1, hour=0) - timedelta(hours=1), 1000)
        await use(superuser, alice, now.replace(day=1, hour=0) - timedelta(hours=2), 1000)
        if now.day > 1:
            await use(superuser, alice, now.replace(day=1, hour=1), 500)
        before = await spent(superuser, alice)
        await leave(leaving, alice)
        again = await come_back(tenants)
        assert again.user_id != alice.user_id
        assert await spent(superuser, again) == before
        await make_thread(tenants, again)

    @pytest.mark.parametrize("days", [1, 40], ids=["the day after", "the month after"])
    async def test_later_has_a_fresh_day_and_a_fresh_month_when_it_is_one(
        self,
        days: int,
        tenants: TenantDatabase,
        superuser: asyncpg.Connection,
        leaving: Leaving,
        alice: Principal,
    ) -> None:
        now = datetime.now(UTC)
        await use(superuser, alice, now, 70)
        await leave(leaving, alice)
        await superuser.execute(
            "UPDATE tombstones SET day = day - $1::int, tokens_in_month_before = 30", days
        )
        earlier = now.date() - timedelta(days=days)
        same_month = (earlier.year, earlier.month) == (now.year, now.month)
        # What was spent before the first of a month was spent in the month before.
        of_month = 0 if not same_month else 70 if earlier.day == 1 else 100
        assert await spent(superuser, await come_back(tenants)) == (0, of_month)

    async def test_keeps_plan_limits_and_suspension(
        self,
        tenants: TenantDatabase,
        superuser: asyncpg.Connection,
        leaving: Leaving,
        alice: Principal,
    ) -> None:
        await superuser.execute("INSERT INTO plans (plan) VALUES ('small')")
        await superuser.execute(
            "INSERT INTO user_limits (user_id, plan, limits) VALUES ($1, 'small', $2)",
            *(alice.user_id, '{"tokens_per_day": 100}'),
        )
        await set_user_state(superuser, alice.user_id, "suspended")
        await leave(leaving, alice)
        again = await come_back(tenants)
        row = await superuser.fetchrow("SELECT user_id, plan, limits FROM user_limits")
        assert tuple(row) == (again.user_id, "small", '{"tokens_per_day": 100}')
        with pytest.raises(UserUnavailable):
            await make_thread(tenants, again)

    @pytest.mark.parametrize(
        ("seconds", "hashes"),
        [(0.0, [HASH]), (LONG, [b"somebody else's"]), (LONG, [])],
        ids=["after the tombstone's time", "as somebody else", "where no keys are set"],
    )
    async def test_begins_anew(
        self,
        seconds: float,
        hashes: list[bytes],
        tenants: TenantDatabase,
        superuser: asyncpg.Connection,
        leaving: Leaving,
        alice: Principal,
    ) -> None:
        await use(superuser, alice, datetime.now(UTC), 70)
        await set_user_state(superuser, alice.user_id, "suspended")
        await leave(leaving, alice, seconds)
        again = await come_back(tenants, hashes)
        assert await spent(superuser, again) == (0, 0)
        await make_thread(tenants, again)

    async def test_once_more_has_spent_what_was_spent_both_times(
        self,
        tenants: TenantDatabase,
        superuser: asyncpg.Connection,
        leaving: Leaving,
        alice: Principal,
    ) -> None:
        await use(superuser, alice, datetime.now(UTC), 70)
        await leave(leaving, alice)
        second = await come_back(tenants)
        await use(superuser, second, datetime.now(UTC), 5)
        await leave(leaving, second)
        assert (await spent(superuser, await come_back(tenants)))[0] == 75

    async def test_is_for_tomorrow_once_somebody_has_left_ten_times_within_a_day(
        self,
        tenants: TenantDatabase,
        superuser: asyncpg.Connection,
        leaving: Leaving,
        alice: Principal,
    ) -> None:
        await leave(leaving, alice)
        await left_before(superuser, times=8)
        last = await come_back(tenants)
        await leave(leaving, last)
        with pytest.raises(TooManyReturns) as refused:
            await come_back(tenants)
        assert refused.value.limit == "returns_per_day"
        assert 86_000 < (refused.value.retry_seconds or 0) <= 86_400
        day = "UPDATE tombstones SET created_at = created_at - interval '1 day'"
        await superuser.execute(day)
        assert (await come_back(tenants)).user_id != last.user_id

    async def test_tells_nobody_else_of_a_tombstone(
        self, tenants: TenantDatabase, database: TestDatabase, leaving: Leaving, alice: Principal
    ) -> None:
        await leave(leaving, alice)
        service = await database.connect("service")
        try:
            assert await service.fetchval("SELECT count(*) FROM tombstones") == 0
        finally:
            await service.close()
