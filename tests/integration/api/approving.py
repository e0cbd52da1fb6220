"""An agent that asks before it acts, and a thread on which it waits for its person's word."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from tests.integration.api.questioning import Waiting, status_of
from tests.support.frames import new_thread, read_run, start_run
from tests.support.model_server import Script, ToolCall
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service
from tests.support.tool_servers.pools import QUICK


@asynccontextmanager
async def asking_service(
    postgres: PostgresServer, folder: Path, **settings: Any
) -> AsyncIterator[RunningService]:
    """A service whose agent needs a word for ``note`` of ``desk``, and none for anything else."""
    catalogue = folder / "mcp.json"
    program = {"command": sys.executable, "args": ["-I", "-S", str(QUICK), "forms"]}
    desk = {**program, "stoa": {"approval": {"note": "always", "*": "never"}}}
    servers = {"desk": desk, "post": program}
    catalogue.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    async with running_service(
        postgres,
        mcp_config=[catalogue],
        mcp_folder=folder / "mcp",
        mcp_sandbox="none",
        requests_per_minute=1_000_000,
        **settings,
    ) as running:
        yield running


def note(text: str) -> ToolCall:
    """The model wants to write something down."""
    return ToolCall(name="desk__note", arguments={"text": text})


@dataclass
class Asked(Waiting):
    """A thread whose run waits for its person's word, or has waited."""

    async def open(self) -> list[dict[str, Any]]:
        """What is open of it, as it was asked, call by call."""
        found = (await self.client.get("/approvals", params={"run_id": self.run_id})).json()
        return sorted(found, key=lambda each: str(each["arguments"]))

    async def only(self) -> dict[str, Any]:
        """The one thing that is open."""
        (found,) = await self.open()
        return found

    async def decide(
        self, approval: dict[str, Any], decision: str, **fields: Any
    ) -> httpx.Response:
        """Decide on what was shown."""
        body = {"decision": decision, "arguments_sha256": approval["arguments_sha256"], **fields}
        return await self.client.post(f"/approvals/{approval['approval_id']}", json=body)

    async def ended(self) -> str:
        """Wait until the run ends, or waits again; return its status."""
        return status_of(await read_run(self.client, self.location))

    async def results(self) -> dict[str, dict[str, Any]]:
        """What came of the thread's calls, by their ids."""
        state = (await self.client.get(f"{self.thread}/state")).json()
        messages = state["values"]["messages"]
        return {each["tool_call_id"]: each for each in messages if each["type"] == "tool"}

    async def calls(self) -> list[dict[str, Any]]:
        """The calls as they stand in the conversation."""
        state = (await self.client.get(f"{self.thread}/state")).json()
        return [call for each in state["values"]["messages"] for call in each.get("tool_calls", ())]


async def asked(
    service: RunningService, *calls: ToolCall, client: httpx.AsyncClient | None = None, **run: Any
) -> Asked:
    """A thread, of somebody new unless told, whose run waits since its agent wants to do this."""
    client = client or service.client(uuid4().hex)
    service.model.enqueue(Script(text="I will write.", tool_calls=calls or (note("one"),)))
    thread_id = await new_thread(client)
    location = await start_run(client, thread_id, "Write it down", **run)
    log = await read_run(client, location)
    assert status_of(log) == "interrupted", log
    return Asked(client, f"/threads/{thread_id}", location, "agent", log)
