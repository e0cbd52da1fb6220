"""``kill -9`` while a person is asked, and once they have decided: asked once, and made once."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.crash.stage import Stage
from tests.support.deployment import STEADY_LEASE
from tests.support.faulty.fault import Fault
from tests.support.frames import new_thread, read_run, start_run
from tests.support.model_server import Script, ToolCall
from tests.support.processes import StoaProcess
from tests.support.tool_servers.recording import RecordingServer, recording_server


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[RecordingServer]:
    async with recording_server() as running:
        running.offer("write", "it was written")
        yield running


@pytest.fixture(scope="module")
async def web(stage: Stage) -> StoaProcess:
    return await stage.open_web()


@pytest.fixture(scope="module")
def settings(server: RecordingServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    catalogue = tmp_path_factory.mktemp("asking") / "mcp.json"
    entry = {"url": server.url, "stoa": {"approval": "always"}}
    catalogue.write_text(json.dumps({"mcpServers": {"notes": entry}}), encoding="utf-8")
    return {"STOA_MCP_CONFIG": str(catalogue), **STEADY_LEASE}


@dataclass
class Turn:
    """Somebody's turn, in which the agent wants to write something down."""

    client: httpx.AsyncClient
    location: str

    async def status(self) -> str:
        """How the run's stream ends."""
        return str((await read_run(self.client, self.location))[-1].data["status"])

    async def asked(self) -> dict[str, Any]:
        """The one thing that waits for the person."""
        (found,) = (await self.client.get("/approvals")).json()
        asked: dict[str, Any] = found
        return asked

    async def approve(self, client: httpx.AsyncClient | None = None) -> httpx.Response:
        """Approve it."""
        asked = await self.asked()
        said = {"decision": "approve", "arguments_sha256": asked["arguments_sha256"]}
        path = f"/approvals/{asked['approval_id']}"
        return await (client or self.client).post(path, json=said)

    async def result(self) -> str:
        """What came of the one call."""
        thread = self.location.split("/")[2]
        state = (await self.client.get(f"/threads/{thread}/state")).json()
        (found,) = [each for each in state["values"]["messages"] if each["type"] == "tool"]
        return str(found["content"])


async def begin(stage: Stage, web: StoaProcess, name: str) -> Turn:
    """Say something that makes the agent want to write."""
    call = ToolCall(name="notes__write", arguments={"text": name})
    stage.deployment.model.enqueue(Script(tool_calls=(call,)))
    client = stage.deployment.http(name, web)
    return Turn(client, await start_run(client, await new_thread(client), "Write it down."))


async def assert_done_once(turn: Turn, server: RecordingServer, name: str) -> None:
    """It was made as it was shown, once, and the model saw what came of it."""
    assert await turn.status() == "success"
    assert await turn.result() == "it was written"
    assert [call.arguments["text"] for call in server.calls].count(name) == 1
    assert (await turn.client.get("/approvals")).json() == []


class TestAQuestionToAPerson:
    @pytest.mark.parametrize(
        "fault",
        [Fault("settle.before"), Fault("settle.after")],
        ids=lambda fault: fault.point,
    )
    async def test_is_asked_once_though_whoever_asks_it_dies(
        self,
        stage: Stage,
        web: StoaProcess,
        server: RecordingServer,
        settings: dict[str, str],
        fault: Fault,
    ) -> None:
        name = uuid4().hex
        doomed = await stage.deployment.start_faulty_worker(fault, **settings)
        rescuer = await stage.deployment.prepare_worker(**settings)
        turn = await begin(stage, web, name)
        await doomed.died()
        await rescuer.let_go()
        await stage.deployment.lease_over(doomed)
        assert await turn.status() == "interrupted"
        assert (await turn.asked())["arguments"] == {"text": name}
        assert name not in str(server.calls)
        assert (await turn.approve()).status_code == 200
        await assert_done_once(turn, server, name)
        await rescuer.kill()


class TestADecision:
    @pytest.mark.parametrize(
        "fault",
        [Fault("checkpoint.before"), Fault("checkpoint.after")],
        ids=lambda fault: fault.point,
    )
    async def test_stands_though_whoever_goes_on_by_it_dies(
        self,
        stage: Stage,
        web: StoaProcess,
        server: RecordingServer,
        settings: dict[str, str],
        fault: Fault,
    ) -> None:
        name = uuid4().hex
        asking = await stage.deployment.start_worker(**settings)
        turn = await begin(stage, web, name)
        assert await turn.status() == "interrupted"
        await asking.kill()
        assert (await turn.approve()).status_code == 200
        doomed = await stage.deployment.start_faulty_worker(fault, **settings)
        rescuer = await stage.deployment.prepare_worker(**settings)
        await doomed.died()
        await rescuer.let_go()
        await stage.deployment.lease_over(doomed)
        await assert_done_once(turn, server, name)
        await rescuer.kill()

    async def test_stands_though_everything_dies_before_anybody_hears_of_it(
        self, stage: Stage, web: StoaProcess, server: RecordingServer, settings: dict[str, str]
    ) -> None:
        name = uuid4().hex
        asking = await stage.deployment.start_worker(**settings)
        turn = await begin(stage, web, name)
        assert await turn.status() == "interrupted"
        await asking.kill()
        doomed = await stage.deployment.start_web(fault=Fault("decision.accepted"))
        with pytest.raises(httpx.TransportError):
            await turn.approve(stage.deployment.http(name, doomed))
        await doomed.died()
        assert name not in str(server.calls)
        worker = await stage.deployment.start_worker(**settings)
        await assert_done_once(turn, server, name)
        again = await turn.client.get("/approvals", params={"state": "decided"})
        assert [each["decision"] for each in again.json()] == ["approve"]
        await worker.kill()
