"""Memories over HTTP: a person's own, to list, search, add, correct and delete."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.service import RunningService

FACT = "Nadia works as a veterinarian."

SOME_ID = "0b6e5f0c-5a0f-4b6e-9d59-6a8f2f6f7ce1"


async def remember(http: httpx.AsyncClient, content: str) -> dict[str, Any]:
    answer = await http.post("/memories", json={"content": content})
    assert answer.status_code in {200, 201}, answer.text
    memory: dict[str, Any] = answer.json()
    return memory


class TestAPersonsMemories:
    async def test_are_added_listed_corrected_and_deleted(self, service: RunningService) -> None:
        http = service.client("remembers")
        first, second = await remember(http, FACT), await remember(http, "Luis cannot swim.")
        assert first["thread_id"] is first["run_id"] is None
        listed = await http.get("/memories", params={"limit": 1})
        assert listed.json() == [second]
        assert listed.headers["X-Pagination-Total"] == "2"
        assert listed.headers["X-Pagination-Next"] == "1"
        path = f"/memories/{first['memory_id']}"
        edited = await http.patch(path, json={"content": "Nadia is retired."})
        assert edited.json()["content"] == "Nadia is retired."
        assert edited.json()["updated_at"] > first["updated_at"]
        assert (await http.get(path)).json() == edited.json()
        last = await http.get("/memories", params={"limit": 5, "offset": 1})
        assert [each["memory_id"] for each in last.json()] == [second["memory_id"]]
        assert "X-Pagination-Next" not in last.headers
        assert (await http.delete(path)).status_code == 204
        assert (await http.delete(path)).status_code == 404
        assert (await http.delete("/memories")).status_code == 204
        assert (await http.get("/memories")).json() == []

    async def test_are_kept_once_in_the_same_words(self, service: RunningService) -> None:
        http = service.client("repeats")
        first = await http.post("/memories", json={"content": FACT})
        again = await http.post("/memories", json={"content": f"  {FACT}\n"})
        assert (first.status_code, again.status_code) == (201, 200)
        assert first.json() == again.json()

    async def test_are_found_by_words(self, service: RunningService) -> None:
        http = service.client("searches")
        for content in (FACT, "Luis cannot swim.", "Oma Trude mag Schlager."):
            await remember(http, content)
        answer = await http.post("/memories/search", json={"query": "Who is a swimmer, Luis?"})
        assert [each["content"] for each in answer.json()] == ["Luis cannot swim."]
        assert answer.json()[0]["score"] > 0
        none = await http.post("/memories/search", json={"query": "harbour"})
        assert none.json() == []

    async def test_are_items_of_the_store(self, service: RunningService) -> None:
        http = service.client("uses-both")
        memory = await remember(http, FACT)
        item = {"namespace": "memories", "key": memory["memory_id"]}
        assert (await http.get("/store/items", params=item)).json()["value"] == {"content": FACT}
        body = {"namespace": ["memories"], "key": str(uuid4()), "value": {"content": "By an SDK."}}
        assert (await http.put("/store/items", json=body)).status_code == 204
        newest, _ = (await http.get("/memories")).json()
        assert (newest["memory_id"], newest["content"]) == (body["key"], "By an SDK.")

    @pytest.mark.parametrize(
        "change",
        [
            {"value": {"content": ""}},
            {"value": {"content": 7}},
            {"value": {"text": "a"}},
            {"value": {"content": "a", "thread_id": SOME_ID}},
            {"value": {"content": "a" * 2001}},
            {"key": "mine"},
            {"key": SOME_ID.upper()},
        ],
        ids=str,
    )
    async def test_have_one_shape_whoever_writes_them(
        self, service: RunningService, change: dict[str, Any]
    ) -> None:
        http = service.client("misshapes")
        body = {"namespace": ["memories"], "key": str(uuid4()), "value": {"content": "a"}, **change}
        assert (await http.put("/store/items", json=body)).status_code == 422
        assert (await http.get("/memories")).json() == []

    async def test_are_answered_to_others_like_unknown_ones(self, service: RunningService) -> None:
        alice, bob = service.client("keeps"), service.client("pries")
        memory = await remember(alice, FACT)
        same = {"X-Request-Id": "5a3e0f0b0c"}
        for method, body in (("GET", None), ("PATCH", {"content": "Mine."}), ("DELETE", None)):
            answers = [
                await bob.request(method, f"/memories/{each}", json=body, headers=same)
                for each in (memory["memory_id"], uuid4())
            ]
            assert answers[0].status_code == answers[1].status_code == 404
            assert answers[0].content == answers[1].content
        assert (await bob.post("/memories/search", json={"query": "Nadia"})).json() == []
        assert (await bob.delete("/memories")).status_code == 204
        assert (await alice.get("/memories")).json() == [memory]

    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"content": ""},
            {"content": " \n"},
            {"content": "a" * 2001},
            {"content": "a", "run_id": SOME_ID},
            {"content": None},
        ],
        ids=str,
    )
    async def test_are_refused_where_they_are_none(
        self, service: RunningService, body: dict[str, Any]
    ) -> None:
        http = service.client("says-nothing")
        assert (await http.post("/memories", json=body)).status_code == 422

    async def test_end_where_the_memory_is_full(self, service: RunningService) -> None:
        http = service.client("full")
        me = (await http.get("/me")).json()["user_id"]
        operator = service.client("operator", groups=["stoa-admins"])
        answer = await operator.put(
            f"/admin/users/{me}/limits", json={"plan": None, "limits": {"memory_bytes": 500}}
        )
        assert answer.status_code == 200, answer.text
        await remember(http, "a")
        refused = await http.post("/memories", json={"content": "many words " * 100})
        assert refused.status_code == 429
        assert refused.json()["code"] == "memory_full"
        assert len((await http.get("/memories")).json()) == 1
