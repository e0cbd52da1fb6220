"""Runs that wait for their person, and are taken up by another worker than the one that asked."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

import asyncpg
import httpx
import pytest

from app.tools.mcp.sending import IDEMPOTENCY_KEY
from tests.integration.tools.office import VAULT_KEYS
from tests.support.frames import new_thread, read_run, start_run
from tests.support.model_server import Script, ToolCall
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service, running_worker
from tests.support.tool_servers.recording import RecordingServer, recording_server


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[RecordingServer]:
    async with recording_server() as running:
        running.offer("write", "it was written")
        yield running


@pytest.fixture(scope="module")
async def service(
    postgres: PostgresServer, server: RecordingServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningService]:
    """No worker yet: a test starts those that it needs."""
    folder = tmp_path_factory.mktemp("asked")
    catalogue = folder / "mcp.json"
    mail = {
        "url": server.url,
        "stoa": {"approval": "always", "credential": {"kind": "header", "name": "X-Key"}},
    }
    catalogue.write_text(json.dumps({"mcpServers": {"mail": mail}}), encoding="utf-8")
    async with running_service(
        postgres,
        worker=False,
        mcp_config=[catalogue],
        mcp_folder=folder / "mcp",
        vault_keys=VAULT_KEYS,
    ) as running:
        yield running


@asynccontextmanager
async def worker(service: RunningService, **settings: Any) -> AsyncIterator[None]:
    """One worker, which is gone afterwards."""
    async with running_worker(service.settings.model_copy(update=settings)):
        yield


class Person:
    """Somebody with a key of their own, and what they have said."""

    def __init__(self, service: RunningService) -> None:
        self.service = service
        self.name = uuid4().hex
        self.client = service.client(self.name)
        self.location = ""

    async def connect(self) -> None:
        """Give the key."""
        answer = await self.client.put("/connections/mail/key", json={"key": f"key-{self.name}"})
        assert answer.status_code == 204, answer.text

    async def ask(self, text: str = "it") -> None:
        """Have the agent want to write something, and read until it waits."""
        call = ToolCall(name="mail__write", arguments={"text": text})
        self.service.model.enqueue(Script(tool_calls=(call,)))
        thread = await new_thread(self.client)
        self.location = await start_run(self.client, thread, "Write it")
        assert await self.status() == "interrupted"

    async def status(self) -> str:
        """How the run's stream ends."""
        return str((await read_run(self.client, self.location))[-1].data["status"])

    async def open(self) -> dict[str, Any]:
        """The one thing that waits for them."""
        (found,) = (await self.client.get("/approvals")).json()
        return cast("dict[str, Any]", found)

    async def decide(self, decision: str = "approve", **fields: Any) -> httpx.Response:
        """Decide on it."""
        waiting = await self.open()
        said = {"decision": decision, "arguments_sha256": waiting["arguments_sha256"], **fields}
        return await self.client.post(f"/approvals/{waiting['approval_id']}", json=said)

    async def result(self) -> dict[str, Any]:
        """What came of the one call."""
        thread = self.location.split("/")[2]
        state = (await self.client.get(f"/threads/{thread}/state")).json()
        (found,) = [each for each in state["values"]["messages"] if each["type"] == "tool"]
        return cast("dict[str, Any]", found)


@pytest.fixture
async def people(service: RunningService) -> list[Person]:
    people = [Person(service), Person(service)]
    for each in people:
        await each.connect()
    return people


class TestARunThatWaits:
    async def test_goes_on_in_another_worker_in_its_own_persons_name(
        self, service: RunningService, server: RecordingServer, people: list[Person]
    ) -> None:
        server.calls.clear()
        async with worker(service):
            for each in people:
                await each.ask(each.name)
        for each in reversed(people):
            assert (await each.decide()).status_code == 200
        assert server.calls == []
        async with worker(service):
            assert [await each.status() for each in people] == ["success", "success"]
        made = {call.arguments["text"]: call.headers["x-key"] for call in server.calls}
        assert made == {each.name: f"key-{each.name}" for each in people}
        assert len(server.calls) == 2
        assert all(IDEMPOTENCY_KEY in call.meta for call in server.calls)

    async def test_is_given_back_to_whoever_waits_for_its_end(
        self, service: RunningService, people: list[Person]
    ) -> None:
        alice = people[0]
        sdk = service.sdk(alice.name)
        call = ToolCall(name="mail__write", arguments={"text": "it"})
        said: Any = {"messages": [{"role": "user", "content": "Write it"}]}
        async with worker(service):
            service.model.enqueue(Script(tool_calls=(call,)))
            thread = (await sdk.threads.create())["thread_id"]
            values = cast("dict[str, Any]", await sdk.runs.wait(thread, "agent", input=said))
            (asked,) = values["__interrupt__"]
            assert asked["value"]["action_requests"][0]["args"] == {"text": "it"}
            (run,) = await sdk.runs.list(thread)
            joined = cast("dict[str, Any]", await sdk.runs.join(thread, run["run_id"]))
            assert [each["type"] for each in joined["messages"]] == ["human", "ai"]
            assert (await sdk.runs.get(thread, run["run_id"]))["status"] == "interrupted"

    async def test_goes_on_waiting_though_whoever_started_it_has_read_to_the_end(
        self, service: RunningService, people: list[Person]
    ) -> None:
        alice = people[0]
        sdk = service.sdk(alice.name)
        call = ToolCall(name="mail__write", arguments={"text": "it"})
        said: Any = {"messages": [{"role": "user", "content": "Write it"}]}
        async with worker(service):
            service.model.enqueue(Script(tool_calls=(call,)))
            thread = (await sdk.threads.create())["thread_id"]
            stream = sdk.runs.stream(thread, "agent", input=said, on_disconnect="cancel")
            parts = [part async for part in stream]
            assert "__interrupt__" in parts[-2].data
            (run,) = await sdk.runs.list(thread)
            alice.location = f"/threads/{thread}/runs/{run['run_id']}"
            assert (await alice.client.get(alice.location)).json()["state"] == "waiting"
            assert (await alice.decide()).status_code == 200
            assert await alice.status() == "success"

    async def test_tells_the_model_what_has_changed_before_it_was_approved(
        self, service: RunningService, people: list[Person], tmp_path: Path
    ) -> None:
        alice, bob = people
        async with worker(service):
            await alice.ask()
            await bob.ask()
        remembered = await alice.client.post("/memories", json={"content": "Pays in cash."})
        assert remembered.status_code in (200, 201), remembered.text
        prompt = tmp_path / "prompt.md"
        prompt.write_text("Be kind.")
        for each in people:
            assert (await each.decide()).status_code == 200
        async with worker(service, system_prompt=prompt):
            assert [await each.status() for each in people] == ["success", "success"]
        notes = [(await each.result())["response_metadata"]["stoa"]["notes"] for each in people]
        assert notes == [["graph", "memory"], ["graph"]]

    async def test_whose_call_is_rejected_makes_none(
        self, service: RunningService, server: RecordingServer, people: list[Person]
    ) -> None:
        server.calls.clear()
        alice = people[0]
        async with worker(service):
            await alice.ask()
            assert (await alice.decide("reject", reason="Not yet")).status_code == 200
            assert await alice.status() == "success"
        result = await alice.result()
        assert (result["status"], server.calls) == ("error", [])
        assert '"Not yet"' in result["content"]

    async def test_is_asked_again_where_the_tool_takes_something_else_by_then(
        self, service: RunningService, server: RecordingServer, people: list[Person]
    ) -> None:
        server.calls.clear()
        alice = people[0]
        async with worker(service):
            await alice.ask()
        first = await alice.open()
        text = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        server.offer("write", "it was written", schema=text)
        assert (await alice.decide()).status_code == 200
        async with worker(service):
            assert await alice.status() == "interrupted"
            again = await alice.open()
            assert again["interrupt_id"] != first["interrupt_id"]
            assert again["asked"]["changed"] == ["schema"]
            assert again["asked"]["schema"]["required"] == ["text"]
            assert server.calls == []
            assert (await alice.decide()).status_code == 200
            assert await alice.status() == "success"
        assert len(server.calls) == 1

    async def test_whose_time_is_over_goes_on_and_the_model_is_told(
        self, service: RunningService, server: RecordingServer, people: list[Person]
    ) -> None:
        server.calls.clear()
        alice = people[0]
        async with worker(service):
            await alice.ask()
        waiting = await alice.open()
        connection = await asyncpg.connect(service.postgres.dsn("owner", service.database))
        await connection.execute(
            "UPDATE approvals SET expires_at = now() - interval '1 second' WHERE approval_id = $1",
            UUID(waiting["approval_id"]),
        )
        await connection.close()
        assert (await alice.decide()).json()["code"] == "approval_expired"
        async with worker(service):
            assert await alice.status() == "success"
        result = await alice.result()
        assert result["response_metadata"]["stoa"]["outcome"] == "expired"
        assert server.calls == []
