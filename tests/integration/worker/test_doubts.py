"""Runs with a call that nobody knows the end of: asked about, answered, or answered after all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any
from uuid import uuid4

import httpx
import mcp_types as types
import pytest
from langgraph_sdk.client import LangGraphClient

from app.tools.mcp.made import HAPPENED, LEFT_OUT
from app.tools.mcp.sending import Sending
from tests.support.model_server import Script, ToolCall
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service
from tests.support.tool_servers.recording import Heard, RecordingServer, recording_server, text

WRITTEN = "it was written"
FIRST_CALL_SECONDS = 1.0


@dataclass
class Slow:
    """A tool that answers its first call only when the test says so."""

    go: asyncio.Event = field(default_factory=asyncio.Event)
    calls: int = 0

    async def __call__(self, _: Heard) -> types.CallToolResult:
        self.calls += 1
        if self.calls == 1:
            await self.go.wait()
        return text(f"{WRITTEN} by call {self.calls}")


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[RecordingServer]:
    async with recording_server() as running:
        running.offer("write")
        yield running


@pytest.fixture(scope="module")
async def service(
    postgres: PostgresServer, server: RecordingServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningService]:
    folder = tmp_path_factory.mktemp("tools")
    catalogue = folder / "mcp.json"
    entries = {
        name: {"url": server.url, "stoa": {"timeout": {"call": 60}, "approval": approval}}
        for name, approval in (("notes", "never"), ("careful", "always"))
    }
    catalogue.write_text(json.dumps({"mcpServers": entries}), encoding="utf-8")
    async with running_service(
        postgres, mcp_config=[catalogue], mcp_folder=folder / "mcp", model_context=16_384
    ) as running:
        yield running


@pytest.fixture
def slow(server: RecordingServer, monkeypatch: pytest.MonkeyPatch) -> Slow:
    """Its first call has little time, which is soon over; those that it answers have enough."""
    tool = Slow()
    server.offer("write", tool)
    real, sent = Sending._answer, count(1)

    async def answer(sending: Sending, *how: Any) -> types.CallToolResult:
        if next(sent) == 1:
            made = sending._call
            brief = replace(made.server.timeouts, call=FIRST_CALL_SECONDS)
            sending._call = replace(made, server=replace(made.server, timeouts=brief))
        return await real(sending, *how)

    monkeypatch.setattr(Sending, "_answer", answer)
    return tool


class Person:
    """Somebody in a thread of their own."""

    def __init__(self, service: RunningService) -> None:
        name = f"somebody {uuid4()}"
        self._service = service
        self._sdk: LangGraphClient = service.sdk(name)
        self.http: httpx.AsyncClient = service.client(name)
        self.thread = ""

    async def says(self, tool: str) -> dict[str, Any]:
        """Have the model make a call; what the person is asked then."""
        self._service.model.enqueue(
            Script(tool_calls=(ToolCall(name=tool, arguments={"text": "a"}),))
        )
        self.thread = (await self._sdk.threads.create())["thread_id"]
        said: Any = {"messages": [{"role": "user", "content": "do it"}]}
        await self._sdk.runs.wait(self.thread, "agent", input=said)
        return await self.asked()

    async def asked(self) -> dict[str, Any]:
        """The one thing that waits for their word."""
        (found,) = (await self.http.get("/approvals")).json()
        return dict(found)

    async def answers(self, question: dict[str, Any], word: str) -> None:
        """Answer, and wait until the run ends or waits again."""
        seen = {"arguments_sha256": question["arguments_sha256"]}
        body = {"decision": word, **(seen if word in ("approve", "repeat") else {})}
        answer = await self.http.post(f"/approvals/{question['approval_id']}", json=body)
        assert answer.status_code == 200, answer.text
        await self._sdk.runs.join(self.thread, question["run_id"])

    async def document(self, question: dict[str, Any]) -> dict[str, Any]:
        """How a question stands now."""
        found: dict[str, Any] = (
            await self.http.get(f"/approvals/{question['approval_id']}")
        ).json()
        return found

    async def results(self) -> list[str]:
        """What came of the calls."""
        state: Any = await self._sdk.threads.get_state(self.thread)
        return [each["content"] for each in state["values"]["messages"] if each["type"] == "tool"]

    async def ends(self, question: dict[str, Any]) -> str:
        """Wait until the run is over, though nobody has answered; how it ended."""
        run_id = question["run_id"]
        async with asyncio.timeout(30):
            while True:
                run = await self._sdk.runs.get(self.thread, run_id)
                if run["status"] not in ("pending", "running", "interrupted"):
                    return str(run["status"])
                await asyncio.sleep(0.02)


@pytest.fixture
def alice(service: RunningService) -> Person:
    return Person(service)


class TestACallThatTimedOut:
    async def test_is_put_before_its_person_with_what_is_known(
        self, alice: Person, slow: Slow
    ) -> None:
        question = await alice.says("notes__write")
        assert (question["kind"], question["decisions"]) == (
            "in_doubt",
            ["happened", "repeat", "leave_out"],
        )
        assert question["asked"]["known"].items() >= {"why": "timeout", "sent": 1}.items()
        assert question["late_outcome"] is None
        await alice.answers(question, "repeat")
        assert await alice.results() == [f"{WRITTEN} by call 2"]

    async def test_is_gone_on_with_once_its_server_answers_after_all(
        self, alice: Person, slow: Slow
    ) -> None:
        question = await alice.says("notes__write")
        slow.go.set()
        assert await alice.ends(question) == "success"
        assert await alice.results() == [f"{WRITTEN} by call 1"]
        closed = await alice.document(question)
        assert (closed["state"], closed["decision"]) == ("superseded", None)
        assert WRITTEN in closed["late_outcome"]["result"]

    async def test_is_left_out_as_its_person_said_and_a_late_answer_is_shown(
        self, alice: Person, slow: Slow
    ) -> None:
        question = await alice.says("notes__write")
        await alice.answers(question, "leave_out")
        slow.go.set()
        async with asyncio.timeout(30):
            while (late := (await alice.document(question))["late_outcome"]) is None:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert WRITTEN in late["result"]
        assert await alice.results() == [LEFT_OUT]

    async def test_that_was_approved_needs_no_second_approval_to_be_repeated(
        self, alice: Person, slow: Slow
    ) -> None:
        approval = await alice.says("careful__write")
        assert approval["kind"] == "call"
        await alice.answers(approval, "approve")
        question = await alice.asked()
        assert question["kind"] == "in_doubt"
        await alice.answers(question, "repeat")
        assert await alice.results() == [f"{WRITTEN} by call 2"]

    async def test_can_be_answered_though_its_server_is_used_no_more(
        self, alice: Person, slow: Slow
    ) -> None:
        question = await alice.says("notes__write")
        gone = await alice.http.post("/connections/notes/disconnect")
        assert gone.status_code in (200, 202), gone.text
        await alice.answers(question, "repeat")
        again = await alice.asked()
        assert (again["kind"], again["server"], again["tool"]) == ("in_doubt", "notes", "write")
        await alice.answers(again, "happened")
        assert await alice.results() == [HAPPENED]
        assert slow.calls == 1
