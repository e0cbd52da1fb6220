"""``kill -9`` around a call of a tool: what it does to the world, it does once, or people say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import mcp_types as types
import pytest

from app.tools.mcp.made import HAPPENED, LEFT_OUT
from app.tools.mcp.sending import IDEMPOTENCY_KEY
from tests.crash.stage import Stage, new_thread
from tests.support.deployment import STEADY_LEASE
from tests.support.faulty.fault import Fault
from tests.support.frames import read_run, start_run
from tests.support.model_server import Script, ToolCall
from tests.support.tool_servers.recording import (
    Heard,
    RecordingServer,
    recording_server,
    text,
)

TRUSTED = {"idempotent": ["repeat"], "idempotency_ttl": 600}
WRITTEN = "it was written"
CALLS = 3


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[RecordingServer]:
    async with recording_server() as running:
        running.offer("write", WRITTEN)
        running.offer("repeat", "it was written, however often")
        yield running


class Trio:
    """A tool that three calls have to have come to before the first is answered, and only that."""

    def __init__(self) -> None:
        self._come = 0
        self._all = asyncio.Event()

    async def __call__(self, _: Heard) -> types.CallToolResult:
        self._come += 1
        mine = self._come
        if mine == CALLS:
            self._all.set()
        await self._all.wait()
        if 1 < mine <= CALLS:
            await asyncio.Event().wait()  # until nobody waits for it any more
        return text(WRITTEN)


@pytest.fixture(scope="module")
def tools(server: RecordingServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    catalogue = tmp_path_factory.mktemp("tools") / "mcp.json"
    entry = {"url": server.url, "stoa": {"trust": TRUSTED}}
    catalogue.write_text(json.dumps({"mcpServers": {"notes": entry}}), encoding="utf-8")
    return {"STOA_MCP_CONFIG": str(catalogue), **STEADY_LEASE}


@dataclass
class Turn:
    """A turn that makes calls, one worker that dies in it, and another that takes it over."""

    client: httpx.AsyncClient
    server: RecordingServer
    location: str
    thread_id: str

    @property
    def keys(self) -> list[str]:
        """What the server was told to know each call by, in the order in which they came."""
        return [call.meta[IDEMPOTENCY_KEY] for call in self.server.calls]

    async def status(self) -> str:
        """How the run is once it ends or waits."""
        return str((await read_run(self.client, self.location))[-1].data["status"])

    async def questions(self) -> list[dict[str, Any]]:
        """What the person is asked."""
        found: list[dict[str, Any]] = (await self.client.get("/approvals")).json()
        return sorted(found, key=lambda each: str(each["arguments"]))

    async def answer(self, question: dict[str, Any], word: str) -> None:
        """Say what to make of a call."""
        seen = {"arguments_sha256": question["arguments_sha256"]} if word == "repeat" else {}
        path = f"/approvals/{question['approval_id']}"
        answered = await self.client.post(path, json={"decision": word, **seen})
        assert answered.status_code == 200, answered.text

    async def results(self) -> list[str]:
        """What the conversation holds of each call, in the order in which the model made them."""
        state = (await self.client.get(f"/threads/{self.thread_id}/state")).json()
        messages = state["values"]["messages"]
        of_call = {each["tool_call_id"]: each for each in messages if each["type"] == "tool"}
        return [
            of_call[call["id"]]["content"]
            for message in messages
            for call in message.get("tool_calls") or ()
        ]


@asynccontextmanager
async def died(
    stage: Stage, server: RecordingServer, tools: dict[str, str], fault: str, *calls: str
) -> AsyncIterator[Turn]:
    """A turn that makes these calls, whose worker died at the point; another one is there now."""
    web = stage._webs[0] if stage.origins else await stage.open_web()
    server.calls.clear()
    made = (
        ToolCall(name=f"notes__{tool}", arguments={"text": str(number)})
        for number, tool in enumerate(calls)
    )
    stage.deployment.model.enqueue(Script(tool_calls=tuple(made)))
    client = stage.deployment.http(stage.person().name, web)
    doomed = await stage.deployment.start_faulty_worker(Fault(fault), **tools)
    rescuer = await stage.deployment.prepare_worker(**tools)
    thread_id = new_thread()
    location = await start_run(client, thread_id, "Write it down.", if_not_exists="create")
    await doomed.died()
    await rescuer.let_go()
    await stage.deployment.lease_over(doomed)
    try:
        yield Turn(client, server, location, thread_id)
    finally:
        await rescuer.kill()


class TestAWorkerThatIsKilledAroundACall:
    @pytest.mark.parametrize(
        ("fault", "calls", "word", "calls_then", "said"),
        [
            ("tool.begun", 0, "repeat", 1, WRITTEN),
            ("tool.answered", 1, "happened", 1, HAPPENED),
        ],
        ids=["before it was sent", "between the server and the ledger"],
    )
    async def test_leaves_the_person_to_say_what_to_make_of_it(
        self,
        stage: Stage,
        server: RecordingServer,
        tools: dict[str, str],
        fault: str,
        calls: int,
        word: str,
        calls_then: int,
        said: str,
    ) -> None:
        async with died(stage, server, tools, fault, "write") as turn:
            assert await turn.status() == "interrupted"
            assert len(server.calls) == calls
            (question,) = await turn.questions()
            assert (question["kind"], question["server"], question["tool"]) == (
                *("in_doubt", "notes"),
                "write",
            )
            assert question["asked"]["known"].items() >= {"why": "lost", "sent": 1}.items()
            await turn.answer(question, word)
            assert await turn.status() == "success"
            assert await turn.results() == [said]
            assert len(server.calls) == calls_then

    @pytest.mark.parametrize(
        ("fault", "tool", "calls", "said"),
        [
            ("tool.recorded", "write", 1, WRITTEN),
            ("tool.answered", "repeat", 2, "it was written, however often"),
        ],
        ids=["between the ledger and the checkpoint", "of one that may be repeated"],
    )
    async def test_leaves_nothing_to_ask_where_there_is_no_doubt(
        self,
        stage: Stage,
        server: RecordingServer,
        tools: dict[str, str],
        fault: str,
        tool: str,
        calls: int,
        said: str,
    ) -> None:
        async with died(stage, server, tools, fault, tool) as turn:
            assert await turn.status() == "success"
            assert await turn.results() == [said]
            assert (len(turn.keys), len(set(turn.keys))) == (calls, 1)


class TestAWorkerThatIsKilledWithThreeCallsUnderWay:
    async def test_leaves_each_to_the_person_and_each_answer_leads_where_it_says(
        self, stage: Stage, server: RecordingServer, tools: dict[str, str]
    ) -> None:
        server.offer("write", Trio())
        async with died(stage, server, tools, "tool.answered", *["write"] * CALLS) as turn:
            assert await turn.status() == "interrupted"
            questions = await turn.questions()
            assert len(questions) == len(set(turn.keys)) == len(turn.keys) == CALLS
            for question, word in zip(questions, ("happened", "repeat", "leave_out"), strict=True):
                await turn.answer(question, word)
            assert await turn.status() == "success"
            assert await turn.results() == [HAPPENED, WRITTEN, LEFT_OUT]
            *first, repeated = server.calls
            assert repeated.arguments == {"text": "1"}
            keys = [each.meta[IDEMPOTENCY_KEY] for each in first if each.arguments["text"] == "1"]
            assert keys == [repeated.meta[IDEMPOTENCY_KEY]]

    async def test_keeps_what_was_recorded_and_asks_of_the_others_alone(
        self, stage: Stage, server: RecordingServer, tools: dict[str, str]
    ) -> None:
        server.offer("write", Trio())
        async with died(stage, server, tools, "tool.recorded", *["write"] * CALLS) as turn:
            assert await turn.status() == "interrupted"
            questions = await turn.questions()
            assert len(questions) == CALLS - 1
            for question in questions:
                await turn.answer(question, "leave_out")
            assert await turn.status() == "success"
            assert sorted(await turn.results()) == sorted([WRITTEN, LEFT_OUT, LEFT_OUT])
            assert len(turn.keys) == len(set(turn.keys)) == CALLS
