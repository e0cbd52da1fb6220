"""The record: read by operators as facts, and by a person as what was done with their account."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import asyncpg
import httpx
import pytest

from app.admin.audit_views import RecordEntry
from tenancy.acts import Act
from tenancy.database.tenant import TenantDatabase
from tenancy.oversight.acts import ActDatabase
from tenancy.oversight.record import RecordDatabase, RecordFilter
from tenancy.own_record import read_own_record
from tenancy.principal import Principal
from tenancy.scheduler.oversight import OversightDatabase
from tests.integration.admin.conftest import ADMINS, answer, id_of
from tests.support.service import RunningService
from tests.support.tenancy import TestDatabase


@pytest.fixture
async def record(database: TestDatabase) -> AsyncIterator[RecordDatabase]:
    door = RecordDatabase(database.settings("maintenance"))
    yield door
    await door.close()


@pytest.fixture
async def acts(database: TestDatabase) -> AsyncIterator[ActDatabase]:
    door = ActDatabase(database.settings("dispatch"))
    yield door
    await door.close()


async def routes_of(record: RecordDatabase, before: int | None = None, **asked: Any) -> list[str]:
    """What is on record, by what was called, the newest first."""
    found = await record.read(RecordFilter(**asked), before, 100)
    return [entry["route"] for entry in found]


class TestTheRecord:
    async def test_is_found_by_whom_it_is_about_who_did_it_and_what(
        self,
        record: RecordDatabase,
        acts: ActDatabase,
        oversight: OversightDatabase,
        alice: Principal,
        bob: Principal,
    ) -> None:
        await acts.looked(Act("one", by=alice.user_id), bob.user_id)
        await acts.looked(Act("two", account="root"), bob.user_id)
        await oversight.set_limits(alice.user_id, None, {}, Act("three", account="root"))
        await acts.refused(Act("four", by=bob.user_id))
        assert await routes_of(record) == ["four", "three", "two", "one"]
        assert await routes_of(record, user_id=bob.user_id) == ["four", "two", "one"]
        assert await routes_of(record, by=alice.user_id) == ["one"]
        assert await routes_of(record, account="root") == ["three", "two"]
        assert await routes_of(record, account="root", user_id=bob.user_id) == ["two"]
        assert await routes_of(record, action="limits_set") == ["three"]
        assert await routes_of(record, action="looked") == ["two", "one"]
        for nobody in ({"user_id": uuid4()}, {"by": uuid4()}, {"account": "nobody"}):
            assert await routes_of(record, **nobody) == []

    async def test_is_found_by_when_it_was_and_page_by_page(
        self, record: RecordDatabase, acts: ActDatabase, alice: Principal
    ) -> None:
        for route in ("one", "two", "three"):
            await acts.looked(Act(route, by=alice.user_id))
        newest, middle, oldest = await record.read(RecordFilter(), None, 100)
        assert await routes_of(record, begin=middle["at"]) == ["three", "two"]
        assert await routes_of(record, end=middle["at"]) == ["one"]
        assert await routes_of(record, newest["audit_id"]) == ["two", "one"]
        (only,) = await record.read(RecordFilter(), middle["audit_id"], 1)
        assert only == oldest

    async def test_names_nobody_who_is_gone(
        self,
        record: RecordDatabase,
        acts: ActDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        bob: Principal,
    ) -> None:
        await acts.looked(Act("one", by=alice.user_id), bob.user_id)
        (before,) = await record.read(RecordFilter(), None, 1)
        assert (before["by_user_id"], before["user_id"]) == (alice.user_id, bob.user_id)
        await superuser.execute("DELETE FROM audit_references")
        (after,) = await record.read(RecordFilter(), None, 1)
        gone = {"by_user_id": None, "user_id": None}
        assert after == {**before, **gone}
        assert await routes_of(record, user_id=bob.user_id) == []

    async def test_is_told_over_http_with_where_to_go_on(self, service: RunningService) -> None:
        operator = service.client(f"operator {uuid4().hex}", groups=ADMINS)
        me = await id_of(operator)
        for path in ("/admin/queue", "/admin/pools", "/admin/plans"):
            await answer(operator, "GET", path)
        asked: dict[str, Any] = {"by": me, "limit": 2}
        first = await operator.get("/admin/audit", params=asked)
        assert [each["route"] for each in first.json()] == ["GET /admin/audit", "GET /admin/plans"]
        asked["cursor"] = first.headers["X-Pagination-Next"]
        rest = await operator.get("/admin/audit", params=asked)
        assert [each["route"] for each in rest.json()] == ["GET /admin/pools", "GET /admin/queue"]
        (queue,) = [each for each in rest.json() if each["route"].endswith("queue")]
        assert queue["by_user_id"] == me
        assert queue["at"].endswith("Z")
        assert RecordEntry.model_validate(queue).user_id is None
        asked["cursor"] = rest.headers["X-Pagination-Next"]
        assert (await operator.get("/admin/audit", params=asked)).json() == []

    @pytest.mark.parametrize(
        "asked",
        [
            {"from": "2024-03-02T00:00:00Z", "to": "2024-03-01T00:00:00Z"},
            {"from": "1999-01-01T00:00:00Z"},
            {"from": "2024-03-01T00:00:00"},
            {"to": "2024-03-01"},
            {"limit": 1001},
            {"cursor": 2**63},
            {"cursor": 0},
            {"user_id": "somebody"},
            {"by": "x\0"},
            {"reference": str(uuid4())},
        ],
        ids=" ".join,
    )
    async def test_is_not_asked_for_what_cannot_be(
        self, operator: httpx.AsyncClient, asked: dict[str, Any]
    ) -> None:
        assert (await operator.get("/admin/audit", params=asked)).status_code == 422


class TestOnesOwnRecord:
    async def test_has_what_one_wrote_and_the_names_of_ones_own(
        self, tenants: TenantDatabase, superuser: asyncpg.Connection, alice: Principal
    ) -> None:
        await superuser.execute(
            "SELECT tenant.audit($1, 'person', 'decided', NULL, NULL, 'c', 'my-diary', 'read',"
            " true, NULL, 'reject', p_reason => 'My aunt is ill.')",
            alice.user_id,
        )
        await superuser.execute(
            "SELECT tenant.audit($1, 'service', 'asked', NULL, NULL, 'c', 'office', 'send', false)",
            alice.user_id,
        )
        asked, decided = await read_own_record(tenants, alice, None, 100)
        assert (asked["server"], asked["tool"], asked["reason"]) == ("office", "send", None)
        assert (decided["server"], decided["tool"]) == ("my-diary", "read")
        assert (decided["actor"], decided["decision"]) == ("person", "reject")
        assert decided["reason"] == "My aunt is ill."

    async def test_is_told_page_by_page_and_to_nobody_else(
        self, tenants: TenantDatabase, acts: ActDatabase, alice: Principal, bob: Principal
    ) -> None:
        for route in ("one", "two", "three"):
            await acts.looked(Act(route, account="root"), alice.user_id)
        await acts.looked(Act("four", by=alice.user_id), bob.user_id)
        newest, second = await read_own_record(tenants, alice, None, 2)
        assert [newest["route"], second["route"]] == ["three", "two"]
        (last,) = await read_own_record(tenants, alice, second["audit_id"], 2)
        assert last["route"] == "one"
        (bobs,) = await read_own_record(tenants, bob, None, 100)
        assert (bobs["route"], bobs["actor"]) == ("four", "operator")
        assert not {"by_reference", "account", "reference"} & set(bobs)

    async def test_is_empty_over_http_while_nothing_was_done(self, service: RunningService) -> None:
        person = service.client(f"p {uuid4().hex}")
        said = await person.get("/me/audit")
        assert (said.json(), said.headers.get("X-Pagination-Next")) == ([], None)
        for wrong in ({"before": 0}, {"before": 2**63}, {"limit": 0}, {"of": "bob"}):
            assert (await person.get("/me/audit", params=wrong)).status_code == 422
