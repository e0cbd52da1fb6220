"""A run keeps the id of the request that made it, which opens nothing and decides nothing."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from tests.support.frames import new_thread
from tests.support.service import RunningService

BODY = {"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": "Hello"}]}}


async def kept(service: RunningService, run_id: str) -> str | None:
    connection = await asyncpg.connect(service.postgres.dsn("owner", service.database))
    try:
        found: str | None = await connection.fetchval(
            "SELECT request_id FROM runs WHERE run_id = $1", run_id
        )
        return found
    finally:
        await connection.close()


class TestTheRequestsId:
    @pytest.mark.parametrize("how", ["runs", "runs/wait", "runs/stream"])
    async def test_is_kept_with_the_run_that_it_makes(
        self, service: RunningService, how: str
    ) -> None:
        http = service.client(f"keeper of {how}")
        path = f"/threads/{await new_thread(http)}"
        answer = await http.post(f"{path}/{how}", json=BODY)
        assert answer.status_code == 200
        (run,) = (await http.get(f"{path}/runs")).json()
        assert await kept(service, run["run_id"]) == answer.headers["x-request-id"]

    async def test_is_the_first_ones_where_a_request_is_sent_again(
        self, service: RunningService
    ) -> None:
        http = service.client("sends twice")
        path = f"/threads/{await new_thread(http)}/runs"
        key = {"Idempotency-Key": uuid4().hex}
        first = await http.post(path, json=BODY, headers=key)
        again = await http.post(path, json=BODY, headers=key)
        assert (again.status_code, again.json()["run_id"]) == (200, first.json()["run_id"])
        assert again.headers["x-request-id"] != first.headers["x-request-id"]
        assert await kept(service, first.json()["run_id"]) == first.headers["x-request-id"]

    async def test_may_come_twice_and_opens_nothing(self, service: RunningService) -> None:
        owner, stranger = service.client("owner of an id"), service.client("knows the id")
        thread = await new_thread(owner)
        given = {"X-Request-Id": uuid4().hex}
        mine = await owner.post(f"/threads/{thread}/runs", json=BODY, headers=given)
        theirs = await stranger.post(f"/threads/{thread}/runs", json=BODY, headers=given)
        unknown = await stranger.post(f"/threads/{uuid4()}/runs", json=BODY, headers=given)
        assert (mine.status_code, theirs.status_code) == (200, 404)
        assert theirs.json() == unknown.json()
        assert "request_id" not in mine.json()

    @pytest.mark.parametrize(
        "given",
        [
            "short",
            "x" * 65,
            "with spaces in it",
            "ünïcode-1",
            "a'; DROP TABLE runs; --",
            "tab\tin it",
        ],
    )
    async def test_is_made_where_the_given_one_could_be_anything(
        self, service: RunningService, given: str
    ) -> None:
        http = service.client(None)
        headers: Any = {b"X-Request-Id": given.encode()}
        made = (await http.get("/ok", headers=headers)).headers["x-request-id"]
        assert len(made) == 32
        assert set(made) <= set("0123456789abcdef")

    async def test_is_made_where_two_are_given(self, service: RunningService) -> None:
        given = [("X-Request-Id", uuid4().hex), ("X-Request-Id", uuid4().hex)]
        answer = await service.client(None).get("/ok", headers=given)
        assert answer.headers["x-request-id"] not in dict(given).values()
