"""What can be mentioned in a message, found while it is typed: through the real route."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx
import pytest

from app.mentions.search import MentionSearch
from tests.integration.api.test_bad_input import SECRET, assert_problem
from tests.support.service import RunningService

SOURCES = ["threads", "memories", "resources", "prompts", "tools", "models"]


async def titled(http: httpx.AsyncClient, text: str) -> str:
    """A conversation of its own, which is titled by its first message."""
    thread = (await http.post("/threads", json={})).json()["thread_id"]
    body = {
        "assistant_id": "agent",
        "input": {"messages": [{"type": "human", "content": text}]},
        "after_seconds": 3600,
    }
    assert (await http.post(f"/threads/{thread}/runs", json=body)).status_code == 200
    return str(thread)


async def search(http: httpx.AsyncClient, q: str, **more: Any) -> dict[str, dict[str, Any]]:
    answer = await http.post("/mentions/search", json={"q": q, **more})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert [group["source"] for group in found["groups"]] == SOURCES
    return {group["source"]: group for group in found["groups"]}


class TestASearch:
    async def test_finds_what_is_ones_own(self, idle: RunningService) -> None:
        ada = idle.client("ada-mentions")
        thread = await titled(ada, "Über the Night Train\nto Vienna")
        memory = (await ada.post("/memories", json={"content": "Prefers the night train."})).json()
        answer = await ada.post("/mentions/search", json={"q": "  uber train "})
        assert answer.json()["query"] == "uber train"
        assert answer.json()["groups"][0] == {
            "source": "threads",
            "provider": "stoa",
            "kind": "thread",
            "display_name": "Chats",
            "status": "ok",
            "results": [
                {
                    "version": 1,
                    "ref": f"thread:{thread}",
                    "provider": "stoa",
                    "kind": "thread",
                    "id": thread,
                    "title": "Über the Night Train",
                    "url": f"/chat/{thread}",
                    "scope": None,
                }
            ],
        }
        found = await search(ada, "night")
        (remembered,) = found["memories"]["results"]
        assert remembered["ref"] == f"memory:{memory['memory_id']}"
        assert remembered["title"] == "Prefers the night train."

    async def test_finds_nothing_of_anybody_else(self, idle: RunningService) -> None:
        ada, bob = idle.client("ada-keeps"), idle.client("bob-looks")
        await titled(ada, "Secret plans")
        await ada.post("/memories", json={"content": "Has secret plans."})
        found = await search(bob, "secret")
        assert found["threads"]["results"] == found["memories"]["results"] == []

    async def test_finds_tools_and_models_of_the_service(self, idle: RunningService) -> None:
        ada = idle.client("ada-tools")
        tools = (await search(ada, "time"))["tools"]["results"]
        assert [each["ref"] for each in tools] == ["tool:stoa:time_now", "tool:stoa:time_convert"]
        assert {each["provider"] for each in tools} == {"stoa"}
        models = (await search(ada, "smol"))["models"]["results"]
        assert [each["ref"] for each in models] == ["model:smollm2:latest"]

    async def test_says_that_there_is_no_server_to_search(self, idle: RunningService) -> None:
        found = await search(idle.client("ada-serverless"), "notes")
        assert found["resources"]["status"] == found["prompts"]["status"] == "not_configured"

    async def test_in_a_conversation_does_not_find_that_one(self, idle: RunningService) -> None:
        ada = idle.client("ada-scoped")
        here, other = await titled(ada, "Plans"), await titled(ada, "Plans")
        found = await search(ada, "plans", scope=here)
        assert [each["id"] for each in found["threads"]["results"]] == [other]

    @pytest.mark.parametrize("of", ["a stranger", "nobody"])
    async def test_of_no_conversation_of_ones_own_is_404_and_asks_nobody(
        self, idle: RunningService, of: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ada, bob = idle.client("ada-owns"), idle.client("bob-asks")
        scope = await titled(ada, "Plans") if of == "a stranger" else str(uuid4())
        monkeypatch.setattr(MentionSearch, "find", None)
        answer = await bob.post("/mentions/search", json={"q": SECRET, "scope": scope})
        assert assert_problem(answer, 404)["code"] == "thread_not_found"

    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"q": ""},
            {"q": " \n "},
            {"q": "x" * 201},
            {"q": f"{SECRET}\x07"},
            {"q": f"{SECRET}\nand more"},
            {"q": f"{SECRET}\u0000"},
            {"q": 7},
            {"q": SECRET, "limit": 0},
            {"q": SECRET, "limit": 11},
            {"q": SECRET, "limit": "5"},
            {"q": SECRET, "scope": "canary sentence of mine"},
            {"q": SECRET, "canary sentence of mine": 1},
        ],
        ids=lambda body: "-".join(f"{key[:6]}{str(value)[-8:]!r}" for key, value in body.items()),
    )
    async def test_that_is_not_right_is_400(
        self, idle: RunningService, body: dict[str, Any]
    ) -> None:
        answer = await idle.client("ada-mistypes").post("/mentions/search", json=body)
        problem = assert_problem(answer, 400)
        assert problem["code"] == "invalid_search"
        assert problem["errors"]

    async def test_takes_200_characters_whatever_is_around_them(self, idle: RunningService) -> None:
        q = f"  {'é' * 200}\n"
        answer = await idle.client("ada-long").post("/mentions/search", json={"q": q, "limit": 10})
        assert answer.json()["query"] == "é" * 200
