"""What is on record goes late, and not before the database lets it, whatever the settings say."""

from __future__ import annotations

import asyncpg
import pytest
from pydantic import ValidationError

from app.settings import Settings
from tenancy.principal import Principal
from tests.integration.worker.retention.conftest import DAY, Retaining, until
from tests.support.tenancy import TestDatabase

DAYS = (500, 399, 1)


@pytest.fixture
async def record(superuser: asyncpg.Connection, alice: Principal) -> None:
    """Of Alice: what is on record and what she wrote with it, what she used, of various age."""
    await superuser.execute("INSERT INTO audit_references (user_id) VALUES ($1)", alice.user_id)
    await superuser.execute(
        "INSERT INTO audit (reference, actor, action, at)"
        " SELECT r.reference, 'person', 'decided', now() - make_interval(days => d)"
        " FROM audit_references r, unnest($1::int[]) d",
        DAYS,
    )
    await superuser.execute(
        "INSERT INTO audit_texts (user_id, audit_id, kind, text, at)"
        " SELECT $1, a.audit_id, 'reason', 'because', a.at FROM audit a",
        alice.user_id,
    )
    await superuser.execute(
        "INSERT INTO usage_hours (user_id, hour, model)"
        " SELECT $1, date_trunc('hour', now()) - make_interval(days => d), 'm'"
        " FROM unnest($2::int[]) d",
        alice.user_id,
        DAYS,
    )


class TestWhatIsOnRecord:
    @pytest.mark.usefixtures("record")
    async def test_goes_after_four_hundred_days(
        self, superuser: asyncpg.Connection, retaining: Retaining
    ) -> None:
        async with retaining(rows=1):
            for table in ("audit_texts", "audit", "usage_hours"):
                await until(superuser, f"SELECT count(*) = 2 FROM {table}")
        for table, at in (("audit_texts", "at"), ("audit", "at"), ("usage_hours", "hour")):
            assert await superuser.fetchval(
                f"SELECT min({at}) > now() - interval '400 days' FROM {table}"
            )

    @pytest.mark.usefixtures("record")
    async def test_stays_where_the_operator_keeps_it_for_ever(
        self, superuser: asyncpg.Connection, retaining: Retaining
    ) -> None:
        async with retaining(audit_retention_seconds=0):
            await until(superuser, "SELECT count(*) = 2 FROM usage_hours")
        assert await superuser.fetchval("SELECT count(*) FROM audit") == len(DAYS)
        assert await superuser.fetchval("SELECT count(*) FROM audit_texts") == len(DAYS)

    @pytest.mark.parametrize(
        ("setting", "days"), [("audit_retention_seconds", 90), ("usage_retention_seconds", 62)]
    )
    def test_cannot_be_kept_shorter_than_the_database_keeps_it(
        self, setting: str, days: int
    ) -> None:
        shortest = Settings.model_validate({setting: days * DAY})
        assert getattr(shortest, setting) == days * DAY
        with pytest.raises(ValidationError, match=f"{days} days"):
            Settings.model_validate({setting: days * DAY - 1})

    @pytest.mark.usefixtures("record")
    async def test_is_not_dropped_early_by_the_service_role_itself(
        self, database: TestDatabase, superuser: asyncpg.Connection, alice: Principal
    ) -> None:
        service = await database.connect("service")
        try:
            async with service.transaction():
                await service.execute("SELECT tenant.begin_write($1)", alice.user_id)
                await service.execute("DELETE FROM usage_hours")
        finally:
            await service.close()
        youngest = "SELECT max(hour) > now() - interval '62 days' FROM usage_hours"
        assert await superuser.fetchval(youngest)


class TestAnErasure:
    async def test_goes_with_its_tombstone_when_nobody_can_come_back_as_themselves_any_more(
        self, superuser: asyncpg.Connection, retaining: Retaining
    ) -> None:
        over, kept, going_on = [
            await superuser.fetchval(
                "INSERT INTO erasures (requested_by, step, ended_at, subject)"
                " VALUES ('person', $1, $2::timestamptz, $3) RETURNING erasure_id",
                *row,
            )
            for row in (
                ("done", await days_ago(superuser, 40), None),
                ("done", await days_ago(superuser, 1), None),
                ("stop", None, "00000000-0000-4000-8000-000000000001"),
            )
        ]
        for erasure in (over, kept, going_on):
            await superuser.execute(
                "INSERT INTO erasure_stops (erasure_id, worker_id) VALUES ($1, gen_random_uuid())",
                erasure,
            )
            await superuser.execute(
                "INSERT INTO tombstones (erasure_id, identity_hash, user_hash, key_id, expires_at)"
                " VALUES ($1, 'i', 'u', 'k', now() + make_interval(days => $2))",
                erasure,
                -1 if erasure == over else 30,
            )
        async with retaining(tombstone_seconds=31 * DAY):
            await until(superuser, "SELECT count(*) = 2 FROM erasures")
            await until(superuser, "SELECT count(*) = 1 FROM erasure_stops")
        left = {row[0] for row in await superuser.fetch("SELECT erasure_id FROM tombstones")}
        assert left == {kept, going_on}


async def days_ago(superuser: asyncpg.Connection, days: int) -> object:
    return await superuser.fetchval("SELECT now() - make_interval(days => $1)", days)
