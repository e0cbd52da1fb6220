"""Threads over HTTP, as LangGraph's clients see them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from langgraph_sdk.errors import ConflictError

from app.api import answers
from tests.support.service import RunningService


class TestAThread:
    async def test_is_created_and_found_again(self, service: RunningService) -> None:
        client = service.sdk("thread-maker")
        made = await client.threads.create(metadata={"topic": "travel"})
        found = await client.threads.get(made["thread_id"])
        assert found == made
        assert (found["status"], found["metadata"]) == ("idle", {"topic": "travel"})
        assert (found["values"], found["interrupts"]) == (None, {})

    async def test_with_a_known_id_is_refused_or_answered(self, service: RunningService) -> None:
        client = service.sdk("thread-maker")
        thread_id = str(uuid4())
        made = await client.threads.create(thread_id=thread_id)
        again = await client.threads.create(thread_id=thread_id, if_exists="do_nothing")
        assert again == made
        with pytest.raises(ConflictError) as refused:
            await client.threads.create(thread_id=thread_id)
        assert refused.value.code == "thread_exists"

    async def test_takes_more_metadata(self, service: RunningService) -> None:
        client = service.sdk("thread-maker")
        made = await client.threads.create(metadata={"a": 1, "b": 1})
        changed = await client.threads.update(made["thread_id"], metadata={"b": 2, "c": None})
        assert changed["metadata"] == {"a": 1, "b": 2, "c": None}
        http = service.client("thread-maker")
        minimal = await http.patch(
            f"/threads/{made['thread_id']}",
            json={"metadata": {"a": 3}},
            headers={"Prefer": "return=minimal"},
        )
        assert (minimal.status_code, minimal.content) == (204, b"")

    async def test_is_gone_once_deleted(self, service: RunningService) -> None:
        http = service.client("thread-maker")
        thread_id = (await http.post("/threads", json={})).json()["thread_id"]
        assert (await http.delete(f"/threads/{thread_id}")).status_code == 204
        gone = await http.get(f"/threads/{thread_id}")
        assert (gone.status_code, gone.json()["code"]) == (404, "thread_not_found")


class TestAThreadWithATimeOfItsOwn:
    async def test_says_when_that_is_over(self, service: RunningService) -> None:
        client = service.sdk("passer-by")
        made = await client.threads.create(ttl=90)
        found: Any = await client.threads.get(made["thread_id"], include=["ttl"])
        kept = found.pop("ttl")
        assert found == made
        assert (kept["strategy"], kept["ttl_minutes"]) == ("delete", 90)
        changed_at, ends_at = map(datetime.fromisoformat, (found["updated_at"], kept["expires_at"]))
        assert ends_at - changed_at == timedelta(minutes=90)

    async def test_gets_another_one_or_none(self, service: RunningService) -> None:
        client, http = service.sdk("passer-by"), service.client("passer-by")
        path = f"/threads/{(await client.threads.create(ttl=90))['thread_id']}"

        async def minutes() -> Any:
            found = (await http.get(path, params={"include": "ttl"})).json()
            return found["ttl"] and found["ttl"]["ttl_minutes"]

        for body, then in (
            ({"ttl": {"ttl": 0.5, "strategy": "delete"}}, 0.5),
            ({"metadata": {"a": 1}}, 0.5),
            ({"ttl": 7}, 7),
            ({"ttl": None}, None),
        ):
            assert (await http.patch(path, json=body)).status_code == 200
            assert await minutes() == then

    @pytest.mark.parametrize(
        "ttl", [0, -1, 1e9, "5", True, {"ttl": 5, "strategy": "keep_latest"}, {"ttl": 5, "x": 1}]
    )
    async def test_cannot_have_one_that_means_nothing_here(
        self, service: RunningService, ttl: Any
    ) -> None:
        http = service.client("passer-by")
        assert (await http.post("/threads", json={"ttl": ttl})).status_code == 422
        thread_id = (await http.post("/threads", json={})).json()["thread_id"]
        assert (await http.patch(f"/threads/{thread_id}", json={"ttl": ttl})).status_code == 422


class TestASearch:
    async def test_pages_through_the_threads(self, service: RunningService) -> None:
        http = service.client("searcher")
        ids = [(await http.post("/threads", json={})).json()["thread_id"] for _ in range(3)]
        first = await http.post("/threads/search", json={"limit": 2})
        assert [each["thread_id"] for each in first.json()] == [ids[2], ids[1]]
        assert first.headers["X-Pagination-Total"] == "3"
        assert first.headers["X-Pagination-Next"] == "2"
        last = await http.post("/threads/search", json={"limit": 2, "offset": 2})
        assert [each["thread_id"] for each in last.json()] == [ids[0]]
        assert "X-Pagination-Next" not in last.headers

    async def test_filters_selects_and_counts(self, service: RunningService) -> None:
        client = service.sdk("filterer")
        await client.threads.create(metadata={"kind": "a"})
        made = await client.threads.create(metadata={"kind": "b"})
        found = await client.threads.search(metadata={"kind": "b"}, select=["thread_id"])
        assert [dict(each) for each in found] == [{"thread_id": made["thread_id"]}]
        assert await client.threads.count(metadata={"kind": "b"}) == 1
        assert await client.threads.count(status="busy") == 0

    async def test_sees_only_ones_own(self, service: RunningService) -> None:
        await service.sdk("neighbour-1").threads.create()
        assert await service.sdk("neighbour-2").threads.search() == []


class TestALargeAnswer:
    async def test_ends_early_and_says_where_it_goes_on(
        self, service: RunningService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(answers, "MOST_BYTES", 1)
        http = service.client("large-reader")
        ids = [(await http.post("/threads", json={})).json()["thread_id"] for _ in range(3)]
        first = await http.post("/threads/search", json={"limit": 3})
        assert [each["thread_id"] for each in first.json()] == [ids[2]]
        assert first.headers["X-Pagination-Next"] == "1"

    async def test_of_a_history_goes_on_before_its_last_state(
        self, service: RunningService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        client = service.sdk("large-reader")
        thread_id = (await client.threads.create())["thread_id"]
        for question in ("one", "two"):
            message: dict[str, Any] = {"messages": [{"role": "user", "content": question}]}
            await client.runs.wait(thread_id, "agent", input=message)
        whole = await client.threads.get_history(thread_id, limit=100)
        assert len(whole) == 6
        monkeypatch.setattr(answers, "MOST_BYTES", 1)
        read = await client.threads.get_history(thread_id, limit=100)
        while len(read) < len(whole):
            page = await client.threads.get_history(
                thread_id, limit=100, before=read[-1]["checkpoint"]
            )
            assert len(page) == 1
            read += page
        assert read == whole


class TestABodyWithoutAnInput:
    async def test_may_not_be_as_large_as_one_with(self, service: RunningService) -> None:
        http = service.client("large-writer")
        refused = await http.post("/threads", json={"metadata": {"a": [0] * 200_000}})
        assert (refused.status_code, refused.json()["code"]) == (413, "body_too_large")

    async def test_may_hold_no_constructor(self, service: RunningService) -> None:
        http = service.client("large-writer")
        refused = await http.post("/threads", json={"metadata": {"a": [{"lc": 1}]}})
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input")
