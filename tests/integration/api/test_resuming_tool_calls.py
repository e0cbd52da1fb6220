"""A real server that asks in the middle of a call: over the API, as a client answers it."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.integration.api.questioning import Waiting, status_of
from tests.support.frames import new_thread, read_run, start_run
from tests.support.model_server import Script, ToolCall
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service
from tests.support.tool_servers.pools import QUICK


@pytest.fixture(scope="module")
async def service(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningService]:
    folder = tmp_path_factory.mktemp("asking")
    catalogue = folder / "mcp.json"
    quick = {"command": sys.executable, "args": ["-I", "-S", str(QUICK)]}
    catalogue.write_text(json.dumps({"mcpServers": {"desk": quick}}), encoding="utf-8")
    async with running_service(
        postgres, mcp_config=[catalogue], mcp_folder=folder / "mcp", mcp_sandbox="none"
    ) as running:
        yield running


async def asked(service: RunningService, **arguments: Any) -> Waiting:
    """A thread of somebody new, whose run waits since a server asks."""
    client = service.client(uuid4().hex)
    service.model.enqueue(Script(tool_calls=(ToolCall(name="desk__ask", arguments=arguments),)))
    thread_id = await new_thread(client)
    location = await start_run(client, thread_id, "Ask them")
    log = await read_run(client, location)
    assert status_of(log) == "interrupted", log
    return Waiting(client, f"/threads/{thread_id}", location, "agent", log)


async def question_of(waiting: Waiting) -> tuple[str, dict[str, Any]]:
    """The interrupt's id, and the one call that asks."""
    ((interrupt_id, value),) = (await waiting.questions()).items()
    (call,) = value["calls"]
    return interrupt_id, call


def replying(call: dict[str, Any], action: str, **content: Any) -> dict[str, Any]:
    reply = {"action": action, **({"content": content} if content else {})}
    (question,) = call["questions"]
    return {"replies": {call["tool_call_id"]: {question["key"]: reply}}}


async def results(client: httpx.AsyncClient, thread: str) -> list[dict[str, Any]]:
    """What came of the calls."""
    state = (await client.get(f"{thread}/state")).json()
    assert set(state["values"]) == {"messages"}
    messages = state["values"]["messages"]
    return [each for each in messages if each["type"] == "tool"]


class TestAServerThatAsks:
    async def test_is_told_what_the_person_answered_and_the_model_what_it_said_then(
        self, service: RunningService
    ) -> None:
        waiting = await asked(service, message="Who are you?")
        last = [frame.data for frame in waiting.log if frame.event == "values"][-1]
        (told,) = last["__interrupt__"]
        interrupt_id, call = await question_of(waiting)
        assert told == {"id": interrupt_id, "value": {"type": "elicitation", "calls": [call]}}
        assert (call["server"], call["tool"]) == ("desk", "ask")
        assert call["questions"][0]["message"] == "Who are you?"
        frames = await waiting.answer_and_read({interrupt_id: replying(call, "accept", name="Ada")})
        assert status_of(frames) == "success"
        (result,) = await results(waiting.client, waiting.thread)
        assert json.loads(result["content"]) == {"action": "accept", "content": {"name": "Ada"}}
        assert result["response_metadata"]["stoa"]["server"] == "desk"

    @pytest.mark.parametrize("action", ["decline", "cancel"])
    async def test_is_told_that_the_person_does_not_answer(
        self, service: RunningService, action: str
    ) -> None:
        waiting = await asked(service)
        _, call = await question_of(waiting)
        assert status_of(await waiting.answer_and_read(replying(call, action))) == "success"
        (result,) = await results(waiting.client, waiting.thread)
        assert json.loads(result["content"])["action"] == action

    async def test_is_told_nothing_that_does_not_fit_its_form(
        self, service: RunningService
    ) -> None:
        waiting = await asked(service)
        interrupt_id, call = await question_of(waiting)
        every: list[Any] = [
            "yes",
            {"replies": {}},
            replying(call, "approve"),
            replying(call, "accept"),
            replying(call, "accept", name=7),
            replying(call, "accept", name="Ada", password="x"),
        ]
        for wrong in every:
            for resume in (wrong, {interrupt_id: wrong}):
                answer = await waiting.answer(resume)
                assert (answer.status_code, answer.json()["code"]) == (422, "invalid_reply"), wrong
        assert (await waiting.run())["state"] == "waiting"
        assert await results(waiting.client, waiting.thread) == []

    async def test_hears_no_more_of_it_where_a_new_message_comes_instead(
        self, service: RunningService
    ) -> None:
        waiting = await asked(service)
        location = await start_run(waiting.client, waiting.thread.rpartition("/")[2], "Never mind")
        assert status_of(await read_run(waiting.client, location)) == "success"
        (result,) = await results(waiting.client, waiting.thread)
        assert result["status"] == "error"
        assert (await waiting.run())["state"] == "cancelled"
        assert not await waiting.questions()
