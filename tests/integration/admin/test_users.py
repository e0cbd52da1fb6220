"""People as operators see them, and what becomes of those who are suspended."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from tests.integration.admin.conftest import ADMINS, CANARY, answer, id_of, start
from tests.integration.admin.recorded import record_of
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service


@pytest.fixture
async def few(postgres: PostgresServer) -> AsyncIterator[RunningService]:
    """A service where nobody is but whom a test brings, and where nothing is executed."""
    async with running_service(postgres, worker=False) as running:
        yield running


async def listed(operator: httpx.AsyncClient, **asked: Any) -> list[dict[str, Any]]:
    """People as a list says them."""
    found: list[dict[str, Any]] = await answer(operator, "GET", "/admin/users", params=asked)
    return found


class TestPeople:
    async def test_are_listed_newest_first_page_by_page(self, few: RunningService) -> None:
        people = [await id_of(few.client(f"{CANARY} {n}", name=CANARY)) for n in range(4)]
        operator = few.client("the operator", groups=ADMINS)
        everybody = [await id_of(operator), *reversed(people)]
        first = await operator.get("/admin/users", params={"limit": 3})
        assert [each["user_id"] for each in first.json()] == everybody[:3]
        assert first.headers["X-Pagination-Total"] == "5"
        rest = await operator.get(
            "/admin/users", params={"limit": 3, "offset": first.headers["X-Pagination-Next"]}
        )
        assert [each["user_id"] for each in rest.json()] == everybody[3:]
        assert "X-Pagination-Next" not in rest.headers
        assert "canary" not in first.text + rest.text
        beyond = await operator.get("/admin/users", params={"offset": 5})
        assert (beyond.json(), beyond.headers["X-Pagination-Total"]) == ([], "5")

    async def test_are_listed_by_when_they_were_last_seen_or_in_a_state(
        self, few: RunningService
    ) -> None:
        operator = few.client("the operator", groups=ADMINS)
        early, late = few.client("early"), few.client("late")
        ids = {name: await id_of(who) for name, who in (("late", late), ("early", early))}
        async with record_of(few) as record:
            await record.superuser.execute(
                "UPDATE request_rates SET arrival = now() - interval '1 day' WHERE user_id = $1",
                UUID(ids["late"]),
            )
        by_sight = await listed(operator, sort="last_seen_at")
        assert [each["user_id"] for each in by_sight][-1] == ids["late"]
        assert by_sight[-1]["last_seen_at"] < by_sight[-1]["created_at"]
        await answer(operator, "POST", f"/admin/users/{ids['early']}/suspend")
        suspended = await listed(operator, state="suspended")
        assert [each["user_id"] for each in suspended] == [ids["early"]]
        assert ids["early"] not in str(await listed(operator, state="active"))

    @pytest.mark.parametrize(
        "asked",
        [{"state": "gone"}, {"sort": "name"}, {"limit": 0}, {"offset": -1}, {"more": 1}],
        ids=str,
    )
    async def test_are_not_listed_by_what_cannot_be_asked(
        self, operator: httpx.AsyncClient, asked: dict[str, Any]
    ) -> None:
        assert (await operator.get("/admin/users", params=asked)).status_code == 422


class TestAPerson:
    @pytest.mark.usefixtures("whole_day")
    async def test_is_shown_in_numbers(self, few: RunningService) -> None:
        operator = few.client("the operator", groups=ADMINS)
        person = few.client(CANARY, name=CANARY, email=f"{CANARY}@canary.test")
        thread = (await start(person)).json()["thread_id"]
        await start(person, thread)
        me = await id_of(person)
        await answer(
            operator,
            "PUT",
            f"/admin/users/{me}/limits",
            json={"plan": None, "limits": {"seats": 2}},
        )
        async with record_of(few) as record:
            await record.superuser.execute(
                "INSERT INTO usage_hours (user_id, hour, model, prompt_tokens, output_tokens)"
                " SELECT $1, date_trunc('hour', h, 'UTC'), 'm', 30, 4"
                " FROM unnest(ARRAY[now(), now() - interval '40 days']) h",
                UUID(me),
            )
            await record.superuser.execute(
                "INSERT INTO run_events (user_id, run_id, seq, event, data)"
                " SELECT user_id, run_id, 1, 'values', $2 FROM runs WHERE user_id = $1",
                *(UUID(me), f'{{"a": "{CANARY}"}}'.encode()),
            )
        found = await answer(operator, "GET", f"/admin/users/{me}")
        assert (found["state"], found["state_at"], found["erasure_id"]) == ("active", None, None)
        assert (found["threads"], found["runs"], found["open_runs"]) == (1, 2, 2)
        assert (found["waiting_approvals"], found["plan"]) == (0, None)
        assert found["limits"] == {"seats": 2}
        assert (found["effective"]["seats"], found["effective"]["running"]) == (2, 4)
        kept = found["rows"]
        assert (kept["users"], kept["threads"], kept["runs"], kept["run_events"]) == (1, 1, 2, 2)
        assert found["bytes"] == sum(found["sizes"].values()) == found["sizes"]["run_events"] > 0
        for used in ("used_today", "used_this_month"):
            assert (found[used]["prompt_tokens"], found[used]["output_tokens"]) == (30, 4)
        (summary,) = [each for each in await listed(operator) if each["user_id"] == me]
        # Worked out from the pace of requests anew for each answer.
        assert summary.pop("last_seen_at") is not None
        assert summary == {name: found[name] for name in summary}

    async def test_of_nobody_is_not_found(self, operator: httpx.AsyncClient) -> None:
        for method, path in (("GET", ""), ("POST", "/suspend"), ("POST", "/resume")):
            said = await operator.request(method, f"/admin/users/{uuid4()}{path}")
            assert (said.status_code, said.json()["code"]) == (404, "user_not_found")


class TestAPersonWhoIsSuspended:
    async def test_can_do_nothing_until_they_are_resumed(
        self, service: RunningService, operator: httpx.AsyncClient
    ) -> None:
        person = service.client(f"p {uuid4().hex}")
        path = f"/admin/users/{await id_of(person)}"
        suspended = await answer(operator, "POST", f"{path}/suspend")
        assert suspended["state"] == "suspended"
        assert suspended["state_at"] is not None
        assert (await answer(operator, "POST", f"{path}/suspend")) | {"last_seen_at": 0} == (
            suspended | {"last_seen_at": 0}
        )
        refused = await person.post("/threads", json={})
        assert (refused.status_code, refused.json()["code"]) == (403, "user_unavailable")
        resumed = await answer(operator, "POST", f"{path}/resume")
        assert resumed["state"] == "active"
        assert (await person.post("/threads", json={})).status_code == 200

    async def test_reads_on_their_record_that_they_were(
        self, service: RunningService, operator: httpx.AsyncClient
    ) -> None:
        person = service.client(f"p {uuid4().hex}")
        path = f"/admin/users/{await id_of(person)}"
        for deed in ("suspend", "suspend", "resume"):
            await answer(operator, "POST", f"{path}/{deed}")
        told = (await person.get("/me/audit")).json()
        assert [(each["actor"], each["action"]) for each in told] == [
            ("operator", "resumed"),
            ("operator", "suspended"),
        ]

    async def test_is_no_operator_meanwhile(
        self, service: RunningService, operator: httpx.AsyncClient
    ) -> None:
        other = service.client(f"operator {uuid4().hex}", groups=ADMINS)
        path = f"/admin/users/{await id_of(other)}"
        await answer(operator, "POST", f"{path}/suspend")
        for method, tried in (("GET", "/admin/queue"), ("POST", f"{path}/resume")):
            refused = await other.request(method, tried)
            assert (refused.status_code, refused.json()["code"]) == (403, "user_unavailable")
        await answer(operator, "POST", f"{path}/resume")
        await answer(other, "GET", "/admin/queue")


class TestAnOperator:
    async def test_does_not_suspend_themselves(self, operator: httpx.AsyncClient) -> None:
        said = await operator.post(f"/admin/users/{await id_of(operator)}/suspend")
        assert (said.status_code, said.json()["code"]) == (409, "own_account")
        assert (await operator.post("/threads", json={})).status_code == 200

    async def test_cannot_change_the_state_of_somebody_who_leaves(
        self, few: RunningService
    ) -> None:
        operator, person = few.client("the operator", groups=ADMINS), few.client("leaving")
        me = await id_of(person)
        async with record_of(few) as record:
            await record.superuser.execute(
                "UPDATE users SET state = 'erasing' WHERE user_id = $1", UUID(me)
            )
            for deed in ("suspend", "resume"):
                said = await operator.post(f"/admin/users/{me}/{deed}")
                assert (said.status_code, said.json()["code"]) == (409, "user_erasing")
            limits = f"/admin/users/{me}/limits"
            for said in (
                await operator.put(limits, json={"plan": None, "limits": {}}),
                await operator.delete(limits),
            ):
                assert (said.status_code, said.json()["code"]) == (404, "user_not_found")
            acts = await record.acts(await id_of(operator))
        assert acts == []


class TestWorkers:
    async def test_are_shown_with_what_they_hold(
        self, service: RunningService, operator: httpx.AsyncClient
    ) -> None:
        (worker,) = await answer(operator, "GET", "/admin/workers")
        assert (worker["draining"], worker["runs"], worker["seats"]) == (False, 0, 0)
        assert 0 < worker["lease_seconds"] <= service.settings.lease_seconds
        assert worker["age_seconds"] > 0
