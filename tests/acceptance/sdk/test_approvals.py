"""An agent that asks before it acts, as LangGraph's own clients see and answer it, unchanged."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest
from langgraph_sdk.errors import ConflictError, UnprocessableEntityError

from tests.acceptance.sdk.test_javascript import visit
from tests.integration.api.approving import asking_service, note
from tests.support.model_server import Script
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService

PAGE = Path(__file__).with_name("approvals.mjs")
WRITE: dict[str, Any] = {"messages": [{"role": "user", "content": "Write it down"}]}
APPROVE = {"type": "approve"}


@pytest.fixture(scope="module")
async def service(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningService]:
    async with asking_service(postgres, tmp_path_factory.mktemp("clients")) as running:
        yield running


def results(messages: list[dict[str, Any]]) -> list[str]:
    """What came of the calls, in the order of the conversation."""
    return [each["content"] for each in messages if each["type"] == "tool"]


def written(result: str) -> list[str]:
    """What the server has written down so far, as it says."""
    notes: list[str] = json.loads(result)[1].split()
    return notes


class TestThePythonClient:
    async def test_edits_one_call_and_approves_another(self, service: RunningService) -> None:
        client = service.sdk(uuid4().hex)
        thread_id = (await client.threads.create())["thread_id"]
        service.model.enqueue(Script(tool_calls=(note("one"), note("two"))))
        values = cast("Any", await client.runs.wait(thread_id, "agent", input=WRITE))
        (interrupt,) = values["__interrupt__"]
        requests = interrupt["value"]["action_requests"]
        assert [each["args"] for each in requests] == [{"text": "one"}, {"text": "two"}]
        thread = await client.threads.get(thread_id)
        assert thread["status"] == "interrupted"
        ((shown,),) = thread["interrupts"].values()
        assert shown["id"] == interrupt["id"]
        edited = {"name": requests[0]["name"], "args": {"text": "better"}}
        decisions: Any = [{"type": "edit", "edited_action": edited}, APPROVE]
        ended = cast(
            "Any",
            await client.runs.wait(
                thread_id, "agent", command={"resume": {interrupt["id"]: {"decisions": decisions}}}
            ),
        )
        whole = [written(result) for result in results(ended["messages"])]
        assert ["better", "two"] in [sorted(each) for each in whole]
        assert (await client.threads.get(thread_id))["status"] == "idle"

    async def test_hears_where_an_answer_does_not_fit_and_that_one_was_given(
        self, service: RunningService
    ) -> None:
        client = service.sdk(uuid4().hex)
        thread_id = (await client.threads.create())["thread_id"]
        service.model.enqueue(Script(tool_calls=(note("one"),)))
        await client.runs.wait(thread_id, "agent", input=WRITE)
        with pytest.raises(UnprocessableEntityError) as refused:
            await client.runs.create(thread_id, "agent", command={"resume": {"decisions": []}})
        assert cast("Any", refused.value.body)["code"] == "invalid_decision"
        answer: Any = {"resume": {"decisions": [{"type": "reject", "message": "No"}]}}
        parts = [part async for part in client.runs.stream(thread_id, "agent", command=answer)]
        assert parts[-1].data["status"] == "success"
        with pytest.raises(ConflictError):
            await client.runs.create(thread_id, "agent", command=answer)


@pytest.fixture(scope="module")
async def seen(service: RunningService) -> dict[str, Any]:
    """What a page saw whose agent asked for two calls at once, and then for another."""
    service.model.enqueue(
        Script(text="Two notes.", tool_calls=(note("a"), note("b"))),
        Script(text="One is written."),
        Script(text="One more.", tool_calls=(note("c"),)),
        Script(text="Done."),
    )
    authorization = service.issuer.headers("a page that is asked")["Authorization"]
    return await visit(PAGE, service.url, authorization)


class TestAPageOfTheJavaScriptClient:
    """It reads and answers as agent-chat-ui does."""

    async def test_shows_what_is_asked_with_what_may_be_decided(self, seen: dict[str, Any]) -> None:
        requests, configs = seen["two"]["requests"], seen["two"]["configs"]
        assert [each["args"] for each in requests] == [{"text": "a"}, {"text": "b"}]
        assert {each["name"] for each in requests} == {"desk__note"}
        assert {each["action_name"] for each in configs} == {"desk__note"}
        assert configs[0]["allowed_decisions"] == ["approve", "edit", "reject"]

    async def test_finds_it_in_the_history(self, seen: dict[str, Any]) -> None:
        (asked,) = seen["history"][-1]
        requests = asked["value"]["action_requests"]
        assert [each["args"] for each in requests] == [{"text": "a"}, {"text": "b"}]

    async def test_edits_one_call_and_rejects_another(self, seen: dict[str, Any]) -> None:
        made = {each["tool_call_id"]: each for each in seen["decided"] if each["type"] == "tool"}
        edited, rejected = (each["tool_call_id"] for each in seen["two"]["requests"])
        assert written(made[edited]["content"]) == ["better"]
        assert "Not this one" in made[rejected]["content"]
        calls = [call for each in seen["decided"] for call in each.get("tool_calls", ())]
        assert [each["args"]["text"] for each in calls] == ["better", "b"]
        assert seen["decided"][-1]["content"] == "One is written."

    async def test_approves_what_it_finds_when_it_is_opened_again(
        self, seen: dict[str, Any]
    ) -> None:
        (request,) = seen["again"]["requests"]
        assert request["args"] == {"text": "c"}
        assert written(results(seen["messages"])[-1]) == ["better", "c"]
        assert seen["messages"][-1]["content"] == "Done."

    async def test_lets_the_run_that_asks_go_on(self, seen: dict[str, Any]) -> None:
        first, answered, second, approved = seen["runs"]
        assert (first, second) == (answered, approved)
        assert first != second
