"""Plans and people's limits over HTTP: what can be set, what holds, and what is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tenancy.scheduler.limits import RULES
from tests.integration.admin.conftest import answer, id_of


@pytest.fixture
async def plan(operator: httpx.AsyncClient) -> AsyncIterator[str]:
    """A plan's name that nobody else uses; the plan is deleted if it was made."""
    name = f"p{uuid4().hex[:12]}"
    yield name
    await operator.delete(f"/admin/plans/{name}")


@pytest.fixture
async def limits(operator: httpx.AsyncClient, person: httpx.AsyncClient) -> AsyncIterator[str]:
    """Where a person's limits are; what is set there is taken away again."""
    path = f"/admin/users/{await id_of(person)}/limits"
    yield path
    await operator.delete(path)


class TestAPersonsLimits:
    async def test_are_the_services_own_until_something_is_set(
        self, operator: httpx.AsyncClient, limits: str
    ) -> None:
        found = await answer(operator, "GET", limits)
        assert (found["plan"], found["limits"], found["updated_at"]) == (None, {}, None)
        assert list(found["effective"]) == list(RULES)
        assert found["effective"]["running"] == 4

    async def test_come_from_their_own_then_their_plan_then_everybodys(
        self, operator: httpx.AsyncClient, limits: str, plan: str
    ) -> None:
        in_plan = {"weight": 2.5, "running": 7, "threads": None}
        made = await answer(operator, "PUT", f"/admin/plans/{plan}", json={"limits": in_plan})
        assert made == {"plan": plan, "limits": in_plan, "users": 0}
        own = {"plan": plan, "limits": {"running": 9}}
        set_ = await answer(operator, "PUT", limits, json=own)
        assert (set_["plan"], set_["limits"]) == (plan, {"running": 9})
        assert set_["updated_at"].endswith("Z")
        in_force = set_["effective"]
        assert (in_force["running"], in_force["weight"], in_force["threads"]) == (9, 2.5, None)
        assert in_force["queued"] == 1000
        assert await answer(operator, "GET", limits) == set_
        (listed,) = [
            each
            for each in (await answer(operator, "GET", "/admin/plans"))["plans"]
            if each["plan"] == plan
        ]
        assert listed["users"] == 1

    async def test_hold_for_the_person_at_once(
        self, operator: httpx.AsyncClient, person: httpx.AsyncClient, limits: str
    ) -> None:
        await answer(operator, "PUT", limits, json={"plan": None, "limits": {"threads": 1}})
        assert (await person.post("/threads", json={})).status_code == 200
        assert (await person.post("/threads", json={})).json()["code"] == "too_many_threads"
        cleared = await answer(operator, "DELETE", limits)
        assert (cleared["limits"], cleared["effective"]["threads"]) == ({}, 10_000)
        assert (await person.post("/threads", json={})).status_code == 200

    async def test_are_replaced_by_what_is_put(
        self, operator: httpx.AsyncClient, limits: str
    ) -> None:
        for own in ({"running": 1, "queued": 5}, {"weight": 3}):
            set_ = await answer(operator, "PUT", limits, json={"plan": None, "limits": own})
            assert set_["limits"] == own

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            ({"limits": {"weight": 0}}, "`weight` is a number from 0.01 to 1000."),
            ({"limits": {"weight": -1}}, "from 0.01"),
            ({"limits": {"weight": None}}, "`weight` is a number"),
            ({"limits": {"running": -1}}, "from 0 to 10000, or null for no limit."),
            ({"limits": {"running": 1.5}}, "a whole number"),
            ({"limits": {"running": True}}, "a whole number"),
            ({"limits": {"running": "4"}}, "a whole number"),
            ({"limits": {"running": [4]}}, "a whole number"),
            ({"limits": {"seats": 10**400}}, "a whole number"),
            ({"limits": {"streams": 0}}, "from 1"),
            ({"limits": {"speed": 1}}, "There are: weight, seats, running, queued,"),
            ({"plan": "nobodys"}, "no plan of that name"),
        ],
    )
    async def test_that_cannot_be_are_refused_with_what_can(
        self, operator: httpx.AsyncClient, limits: str, wrong: dict[str, Any], said: str
    ) -> None:
        body = {"plan": None, "limits": {}, **wrong}
        response = await operator.put(limits, json=body)
        assert (response.status_code, response.json()["code"]) == (422, "invalid_input")
        assert said in response.json()["detail"]
        assert (await answer(operator, "GET", limits))["updated_at"] is None

    @pytest.mark.parametrize(
        "body", [{}, {"plan": None}, {"limits": {}}, {"plan": 3, "limits": {}}, {"more": 1}]
    )
    async def test_of_another_shape_are_refused(
        self, operator: httpx.AsyncClient, limits: str, body: dict[str, Any]
    ) -> None:
        response = await operator.put(limits, json=body)
        assert response.status_code == 422
        assert response.json()["errors"]

    async def test_of_nobody_are_not_found(self, operator: httpx.AsyncClient) -> None:
        path = f"/admin/users/{uuid4()}/limits"
        for response in (
            await operator.get(path),
            await operator.put(path, json={"plan": None, "limits": {}}),
            await operator.delete(path),
        ):
            assert (response.status_code, response.json()["code"]) == (404, "user_not_found")


class TestAPlan:
    async def test_is_kept_while_somebody_has_it(
        self, operator: httpx.AsyncClient, limits: str, plan: str
    ) -> None:
        path = f"/admin/plans/{plan}"
        await answer(operator, "PUT", path, json={"limits": {}})
        await answer(operator, "PUT", limits, json={"plan": plan, "limits": {}})
        kept = await operator.delete(path)
        assert (kept.status_code, kept.json()["code"]) == (409, "plan_in_use")
        await answer(operator, "DELETE", limits)
        assert (await operator.delete(path)).status_code == 204
        gone = await operator.delete(path)
        assert (gone.status_code, gone.json()["code"]) == (404, "plan_not_found")

    async def test_named_default_is_everybodys(
        self, operator: httpx.AsyncClient, limits: str
    ) -> None:
        try:
            await answer(operator, "PUT", "/admin/plans/default", json={"limits": {"queued": 5}})
            assert (await answer(operator, "GET", limits))["effective"]["queued"] == 5
        finally:
            await operator.delete("/admin/plans/default")
        assert (await answer(operator, "GET", limits))["effective"]["queued"] == 1000

    @pytest.mark.parametrize("name", ["Gold", "a b", "-a", "x" * 41, "%00", "a%0a", "ä"])
    async def test_of_a_name_that_cannot_be_is_refused(
        self, operator: httpx.AsyncClient, name: str
    ) -> None:
        response = await operator.put(f"/admin/plans/{name}", json={"limits": {}})
        assert response.status_code == 422

    async def test_holds_only_limits_that_can_be(
        self, operator: httpx.AsyncClient, plan: str
    ) -> None:
        response = await operator.put(f"/admin/plans/{plan}", json={"limits": {"weight": 0}})
        assert response.status_code == 422
        assert (await operator.delete(f"/admin/plans/{plan}")).status_code == 404


class TestTheRules:
    async def test_say_what_can_be_set_and_what_holds_for_everybody(
        self, operator: httpx.AsyncClient
    ) -> None:
        rules = (await answer(operator, "GET", "/admin/plans"))["rules"]
        assert [each["name"] for each in rules] == list(RULES)
        (weight,) = (each for each in rules if each["name"] == "weight")
        assert (weight["least"], weight["most"], weight["whole"]) == (0.01, 1000, False)
        assert (weight["may_be_unlimited"], weight["default"]) == (False, 1)
