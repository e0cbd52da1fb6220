"""``kill -9`` around a call of a tool: what it does to the world, it does once, or says so."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.tools.mcp.sending import IDEMPOTENCY_KEY
from tests.crash.stage import Stage, new_thread
from tests.support.deployment import QUICK_LEASE
from tests.support.faulty.fault import Fault
from tests.support.model_server import Script, ToolCall
from tests.support.tool_servers.recording import RecordingServer, recording_server

IN_DOUBT = "nobody knows what came of it"
TRUSTED = {"idempotent": ["repeat"], "idempotency_ttl": 600}


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[RecordingServer]:
    async with recording_server() as running:
        running.offer("write", "it was written")
        running.offer("repeat", "it was written, however often")
        yield running


@pytest.fixture(scope="module")
def tools(server: RecordingServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    catalogue = tmp_path_factory.mktemp("tools") / "mcp.json"
    entry = {"url": server.url, "stoa": {"trust": TRUSTED}}
    catalogue.write_text(json.dumps({"mcpServers": {"notes": entry}}), encoding="utf-8")
    return {"STOA_MCP_CONFIG": str(catalogue), **QUICK_LEASE}


class TestAWorkerThatIsKilledAroundACall:
    @pytest.mark.parametrize(
        ("fault", "tool", "calls", "said"),
        [
            ("tool.begun", "write", 0, IN_DOUBT),
            ("tool.answered", "write", 1, IN_DOUBT),
            ("tool.recorded", "write", 1, "it was written"),
            ("tool.answered", "repeat", 2, "it was written, however often"),
        ],
    )
    async def test_leaves_it_to_another_one_which_does_not_guess(
        self,
        stage: Stage,
        server: RecordingServer,
        tools: dict[str, str],
        fault: str,
        tool: str,
        calls: int,
        said: str,
    ) -> None:
        if not stage.origins:
            await stage.open_web()
        server.calls.clear()
        stage.deployment.model.enqueue(
            Script(tool_calls=(ToolCall(name=f"notes__{tool}", arguments={"text": "a"}),)),
        )
        person, thread_id = stage.person(), new_thread()
        doomed = await stage.deployment.start_faulty_worker(Fault(fault), **tools)
        rescuer = await stage.deployment.prepare_worker(**tools)
        reading = asyncio.create_task(person.say_and_read(thread_id, "Write it down."))
        await doomed.died()
        await rescuer.let_go()
        await reading
        result = await answer_of_tool(stage, person, thread_id)
        assert said in result["content"]
        assert len(server.calls) == calls
        assert len({call.meta[IDEMPOTENCY_KEY] for call in server.calls}) <= 1
        await rescuer.kill()


async def answer_of_tool(stage: Stage, person: Any, thread_id: str) -> dict[str, Any]:
    """The one result in a thread."""
    client = stage.deployment.http(person.name, stage._webs[0])
    state = (await client.get(f"/threads/{thread_id}/state")).json()
    (result,) = [each for each in state["values"]["messages"] if each["type"] == "tool"]
    found: dict[str, Any] = result
    return found
