"""Operators look and act while people's runs are under way; no word of anybody's reaches them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.integration.admin.conftest import CANARY, LOOK_SECONDS, answer, id_of, start
from tests.support.limits import settled_usage
from tests.support.model_server import Script
from tests.support.service import RunningService

POOL = "/admin/pools/default"


@pytest.fixture
async def one_seat(operator: httpx.AsyncClient) -> AsyncIterator[None]:
    """The pool takes one call at once."""
    await answer(operator, "PATCH", POOL, json={"capacity": 1})
    yield
    await answer(operator, "PATCH", POOL, json={"capacity": None})


async def ended(person: httpx.AsyncClient, run: httpx.Response) -> str:
    """Wait for a run's end, and say in which state it is."""
    path = f"/threads/{run.json()['thread_id']}/runs/{run.json()['run_id']}"
    await person.get(f"{path}/join")
    state: str = (await person.get(path)).json()["state"]
    return state


async def until_it_waits(operator: httpx.AsyncClient, run: httpx.Response) -> dict[str, Any]:
    """A run's row in the queue, once it waits for the model."""
    while True:
        for each in (await answer(operator, "GET", "/admin/queue?limit=1000"))["waiting"]:
            if each["run_id"] == run.json()["run_id"] and each["waits_for"] == "model":
                found: dict[str, Any] = each
                return found
        await asyncio.sleep(LOOK_SECONDS)


class TestASuspendedPerson:
    async def test_goes_on_when_an_operator_lets_them(
        self, operator: httpx.AsyncClient, person: httpx.AsyncClient
    ) -> None:
        me = await id_of(person)
        limits = f"/admin/users/{me}/limits"
        await answer(operator, "PUT", limits, json={"plan": None, "limits": {"running": 0}})
        run = await start(person)
        queue = await answer(operator, "GET", "/admin/queue")
        assert [(each["user_id"], each["why"]) for each in queue["waiting"]] == [(me, "suspended")]
        await answer(operator, "DELETE", limits)
        assert await ended(person, run) == "success"


class TestAPool:
    async def test_gives_a_seat_to_who_waits_when_an_operator_adds_one(
        self,
        service: RunningService,
        operator: httpx.AsyncClient,
        person: httpx.AsyncClient,
        one_seat: None,
    ) -> None:
        other = service.client(f"{CANARY} {uuid4().hex}")
        stalls = sum(each.stalled_at is not None for each in service.model.requests)
        service.model.enqueue(Script(text="one two", stall_at=1))
        first = await start(person)
        call = await service.model.wait_for_stall(stalls + 1)
        second = await start(other)
        waiting = await until_it_waits(operator, second)
        assert (waiting["why"], waiting["user_id"]) == ("queue", await id_of(other))
        (pool,) = (await answer(operator, "GET", "/admin/pools"))["pools"]
        assert (pool["capacity"], pool["in_use"], pool["state"]) == (1, 1, "open")

        changed = await answer(operator, "PATCH", POOL, json={"capacity": 2})
        assert (changed["capacity"], changed["set_capacity"]) == (2, 2)
        assert await ended(other, second) == "success"
        service.model.release(call)
        assert await ended(person, first) == "success"

    async def test_of_no_seats_holds_everybody_until_it_has_some(
        self, operator: httpx.AsyncClient, person: httpx.AsyncClient, one_seat: None
    ) -> None:
        await answer(operator, "PATCH", POOL, json={"capacity": 0})
        run = await start(person)
        assert (await until_it_waits(operator, run))["why"] == "model_unavailable"
        await answer(operator, "PATCH", POOL, json={"capacity": None})
        assert await ended(person, run) == "success"

    @pytest.mark.parametrize("capacity", [-1, 1.5, "2", True, 10_001, 10**30])
    async def test_takes_no_number_that_cannot_be(
        self, operator: httpx.AsyncClient, capacity: object
    ) -> None:
        response = await operator.patch(POOL, json={"capacity": capacity})
        assert response.status_code == 422
        (pool,) = (await answer(operator, "GET", "/admin/pools"))["pools"]
        assert pool["set_capacity"] is None

    async def test_must_be_one_that_there_is_and_be_told_something(
        self, operator: httpx.AsyncClient
    ) -> None:
        for name in ("nobodys", "%00", "a%20b"):
            response = await operator.patch(f"/admin/pools/{name}", json={"capacity": 1})
            assert (response.status_code, response.json()["code"]) == (404, "pool_not_found")
        assert (await operator.patch(POOL, json={})).status_code == 422


class TestUsage:
    async def test_is_by_time_in_total_and_by_person(
        self, operator: httpx.AsyncClient, person: httpx.AsyncClient
    ) -> None:
        me = await id_of(person)
        assert await ended(person, await start(person)) == "success"
        asked_at = datetime.now(UTC)
        used = await settled_usage(operator, 1, "/admin/usage", user_id=me)
        assert used["bucket"] == "hour"
        assert len(used["buckets"]) == 24
        total = used["total"]
        assert (total["runs"], total["calls"]) == (1, 1)
        assert total["prompt_tokens"] > 0 < total["output_tokens"]
        assert used["users"] == [{"user_id": me, **total}]
        for name in ("runs", "calls", "prompt_tokens", "output_tokens"):
            assert sum(each[name] for each in used["buckets"]) == total[name]
        newest = datetime.fromisoformat(used["to"])
        assert datetime.fromisoformat(used["from"]) < asked_at <= newest

    async def test_of_everybody_names_first_who_used_most(
        self, operator: httpx.AsyncClient, person: httpx.AsyncClient
    ) -> None:
        assert await ended(person, await start(person)) == "success"
        await settled_usage(operator, 1, "/admin/usage", user_id=await id_of(person))
        used = await answer(operator, "GET", "/admin/usage?bucket=day")
        tokens = [each["prompt_tokens"] + each["output_tokens"] for each in used["users"]]
        assert tokens == sorted(tokens, reverse=True)
        assert sum(tokens) == used["total"]["prompt_tokens"] + used["total"]["output_tokens"]
        one = await answer(operator, "GET", "/admin/usage?bucket=day&limit=1")
        assert one["users"] == used["users"][:1]
        assert one["total"] == used["total"]

    async def test_of_nothing_is_zeros(self, operator: httpx.AsyncClient) -> None:
        params = {"from": "2020-02-28T12:30:00Z", "to": "2020-03-01T01:00:00+01:00"}
        used = await answer(operator, "GET", "/admin/usage", params={**params, "bucket": "day"})
        starts = [each["start"] for each in used["buckets"]]
        assert starts == ["2020-02-28T00:00:00Z", "2020-02-29T00:00:00Z"]
        assert (used["to"], used["users"]) == ("2020-03-01T00:00:00Z", [])
        assert not any(used["total"].values())

    @pytest.mark.parametrize(
        "params",
        [
            {"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"},
            {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"},
            {"from": "2025-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"},
            {"from": "0001-01-01T00:00:00+14:00"},
            {"to": "9999-12-31T23:59:59Z"},
            {"from": "2026-01-01T00:00:00"},
            {"bucket": "minute"},
            {"limit": "1001"},
            {"user_id": "me"},
            {"since": "yesterday"},
        ],
        ids=str,
    )
    async def test_of_no_range_that_there_is_is_refused(
        self, operator: httpx.AsyncClient, params: dict[str, str]
    ) -> None:
        response = await operator.get("/admin/usage", params=params)
        assert response.status_code == 422, response.text


class TestTheLog:
    async def test_of_what_operators_do_has_no_word_of_anybodys(
        self,
        operator: httpx.AsyncClient,
        person: httpx.AsyncClient,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        me = await id_of(person)
        await start(person)
        for path in ("/admin/queue", "/admin/usage", f"/admin/users/{me}/limits"):
            await answer(operator, "GET", path)
        await operator.put("/admin/plans/x", json={"limits": {CANARY: CANARY}})
        said = capsys.readouterr()
        logged = said.out + said.err
        assert "/admin/queue" in logged
        assert "canary" not in logged.lower()
        assert json.dumps(me) not in logged
