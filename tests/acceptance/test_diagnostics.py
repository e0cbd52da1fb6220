"""An operator follows one request through real processes, and reads no word that anybody wrote."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
import pytest

from tests.support import forked
from tests.support.collector import CollectedSpan, Collector, collector
from tests.support.deployment import Deployment, deployed
from tests.support.frames import follow, new_thread, read_run, start_run
from tests.support.model_server import Script, ToolCall
from tests.support.processes import StoaProcess
from tests.support.tenancy import TestDatabase
from tests.support.tool_servers.recording import RecordingServer, recording_server

SAID = "My secret is safe with you"
PARTS = {"request", "run attempt", "model call", "tool call"}


@dataclass
class World:
    """A web process and a worker that log for programs, and send their traces to a collector."""

    deployment: Deployment
    web: StoaProcess
    worker: StoaProcess
    tools: RecordingServer
    collector: Collector

    def lines(self, process: StoaProcess) -> list[dict[str, Any]]:
        """What it has logged: JSON, all of it."""
        return [json.loads(line) for line in process.output.splitlines()]

    async def attempt_at(self, run_id: str) -> CollectedSpan:
        """The span of the attempt at a run, once it has come."""
        return await self.collector.collected(lambda span: span.facts.get("stoa.run_id") == run_id)


@pytest.fixture(scope="module")
async def world(
    template: TestDatabase, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    folder = tmp_path_factory.mktemp("diagnostics")
    (folder / "logs").mkdir()
    async with AsyncExitStack() as stack:
        collecting = await stack.enter_async_context(collector())
        tools = await stack.enter_async_context(recording_server())
        tools.offer("note", "noted")
        deployment = await stack.enter_async_context(deployed(template, folder / "logs"))
        (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"notes": {"url": tools.url}}}))
        settings = {
            "STOA_LOG_FORMAT": "json",
            "STOA_OTLP_URL": collecting.url,
            "STOA_MCP_CONFIG": str(folder / "mcp.json"),
            "STOA_MCP_FOLDER": str(folder / "mcp"),
            "HTTP_PROXY": "http://127.0.0.1:9",
        }
        web = await deployment.start_web(port=None, fault=None, **settings)
        worker = await deployment.start_worker(**settings)
        yield World(deployment, web, worker, tools, collecting)


@pytest.fixture
def person(world: World) -> httpx.AsyncClient:
    """Somebody new."""
    return world.deployment.http(f"somebody {uuid4()}", world.web)


def run_id_of(location: str) -> str:
    return location.rpartition("/")[2]


class TestOneRequest:
    async def test_is_found_by_its_id_in_every_process_and_with_whomever_they_ask(
        self, world: World, person: httpx.AsyncClient
    ) -> None:
        request_id = uuid4().hex
        asked = len(world.deployment.model.requests)
        call = ToolCall(name="notes__note", arguments={"text": SAID})
        world.deployment.model.enqueue(Script(tool_calls=(call,)), Script(text=SAID))
        thread = await new_thread(person)
        person.headers["X-Request-Id"] = request_id
        location = await start_run(person, thread, SAID)
        del person.headers["X-Request-Id"]
        await read_run(person, location)
        run_id = run_id_of(location)

        (heard,) = world.tools.made("note")
        assert heard.meta["stoa/request_id"] == request_id
        calls = world.deployment.model.requests[asked:]
        assert [each.headers["x-request-id"] for each in calls] == [request_id] * 2
        told = [line for line in world.lines(world.web) if line.get("request_id") == request_id]
        assert [line["event"] for line in told] == ["run accepted", "request"]
        assert told[0]["run_id"] == run_id
        assert told[1]["route"] == "/threads/{thread_id}/runs"
        seen = await admin(world.deployment, "run", run_id, "--json")
        assert json.loads(seen)["request_id"] == request_id

    async def test_is_one_trace_through_both_processes_without_a_word(
        self, world: World, person: httpx.AsyncClient
    ) -> None:
        call = ToolCall(name="notes__note", arguments={"text": SAID})
        world.deployment.model.enqueue(Script(tool_calls=(call,)), Script(text=SAID))
        location = await start_run(person, await new_thread(person), SAID)
        await read_run(person, location)
        attempt = await world.attempt_at(run_id_of(location))
        request = await world.collector.collected(lambda span: span.span == attempt.parent)
        assert (request.process, attempt.process) == ("stoa-web", "stoa-worker")
        assert request.name == "POST /threads/{thread_id}/runs"
        assert request.trace == attempt.trace == request.facts["stoa.request_id"]
        assert request.facts["http.response.status_code"] == 200
        assert attempt.facts["stoa.outcome"] == "success"
        assert attempt.facts["stoa.tenant"] == request.facts["stoa.tenant"]
        parts = [span for span in world.collector.spans if span.parent == attempt.span]
        assert [span.name for span in parts] == ["model call", "tool call", "model call"]
        assert parts[1].facts == {"stoa.server": "notes", "stoa.outcome": "ok"}
        assert parts[2].facts["stoa.output_tokens"] > 0
        everything = json.dumps([vars(span) for span in world.collector.spans])
        assert SAID not in everything
        assert location not in everything
        names = {span.name.rpartition(" /")[0] or span.name for span in world.collector.spans}
        assert names <= {"GET", "POST", *PARTS}

    async def test_left_by_whoever_reads_it_is_routine(
        self, world: World, person: httpx.AsyncClient
    ) -> None:
        stalls = world.deployment.stalls
        world.deployment.model.enqueue(Script(text=SAID, stall_at=1))
        body = {"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": SAID}]}}
        path = f"/threads/{await new_thread(person)}/runs/stream"
        person.headers["X-Request-Id"] = request_id = uuid4().hex
        async with person.stream("POST", path, json=body) as stream:
            await anext(follow(stream))
            location = stream.headers["content-location"]
        line = await self._access_line(world, request_id)
        assert (line["status"], line["cut_by"], line["level"]) == (200, "client", "info")
        await world.deployment.model.wait_for_stall(stalls + 1)
        assert (await person.post(f"{location}/cancel?wait=true")).status_code < 300

    async def _access_line(self, world: World, request_id: str) -> dict[str, Any]:
        await world.web.logged(f'"request_id": "{request_id}", "tenant"')
        (line,) = [
            line
            for line in world.lines(world.web)
            if line["event"] == "request" and line["request_id"] == request_id
        ]
        return line


class TestAFailureThatNobodyForesaw:
    async def test_of_a_run_leaves_one_record(
        self, world: World, person: httpx.AsyncClient
    ) -> None:
        person.headers["X-Request-Id"] = request_id = uuid4().hex
        location = await start_run(
            person, await new_thread(person), assistant="raising", graph_input={"numbers": [4, 2]}
        )
        del person.headers["X-Request-Id"]
        await read_run(person, location)
        lines = [line for line in world.lines(world.worker) if line["level"] == "error"]
        (record,) = [line for line in lines if line.get("request_id") == request_id]
        assert record["run_id"] == run_id_of(location)
        assert (record["event"], record["stage"]) == ("run failed", "run")
        assert (record["error"], record["code"]) == ("RuntimeError", "graph_failed")
        assert record["stack"][0] == "RuntimeError"
        assert any("raising.py" in place for place in record["stack"])
        assert "secret-4-2" not in world.deployment.all_logs()
        attempt = await world.attempt_at(run_id_of(location))
        assert (attempt.facts["stoa.code"], attempt.failed) == ("graph_failed", True)

    async def test_of_a_command_leaves_one_record_instead_of_what_python_prints(
        self, world: World
    ) -> None:
        async with world.deployment.superuser() as superuser:
            rename = "ALTER FUNCTION tenant.%s(uuid) RENAME TO %s"
            await superuser.execute(rename % ("inspect_run", "inspect_gone"))
            try:
                output = await admin(world.deployment, "run", str(uuid4()), status=1)
            finally:
                await superuser.execute(rename % ("inspect_gone", "inspect_run"))
        (line,) = output.splitlines()
        record = json.loads(line)
        assert (record["event"], record["stage"]) == ("failed unexpectedly", "command")
        assert record["error"].endswith("Error")
        assert any("timelines.py" in place for place in record["stack"])
        assert "inspect_run" not in json.dumps(record).replace("inspection", "")

    async def test_of_its_start_is_a_line_of_the_log_too(self, world: World) -> None:
        port = str(urlsplit(world.web.url).port)
        environment = {
            "STOA_LOG_FORMAT": "json",
            "STOA_DATABASE_URL": world.deployment.database.dsn("service"),
            "STOA_DISPATCH_DATABASE_URL": world.deployment.database.dsn("dispatch"),
        }
        status, output = await forked.run(("web", "--port", port), environment)
        assert status == 2
        (line,) = output.splitlines()
        assert json.loads(line)["why"].startswith("Cannot listen on 127.0.0.1:")


class TestACollectorThatDoesNotAnswer:
    async def test_slows_no_request_and_does_not_keep_the_process(self, world: World) -> None:
        async with collector(silent=True) as silent:
            web = await world.deployment.start_web(
                port=None, fault=None, STOA_OTLP_URL=silent.url, STOA_LOG_FORMAT="json"
            )
            person = world.deployment.http(f"somebody {uuid4()}", web)
            await silent.asked.wait()
            for _ in range(20):
                assert (await person.get("/me")).status_code == 200
            assert await web.terminate() in (0, -signal.SIGTERM)
        ended = [json.loads(line) for line in web.output.splitlines()]
        assert {line.get("event") for line in ended if line["level"] == "error"} <= {
            "Failed to export %s batch due to timeout, max retries or shutdown."
        }


async def admin(deployment: Deployment, *arguments: str, status: int = 0) -> str:
    """What a command of an operator's says."""
    environment = {
        "STOA_DISPATCH_DATABASE_URL": deployment.database.dsn("dispatch"),
        "STOA_MAINTENANCE_DATABASE_URL": deployment.database.dsn("maintenance"),
        "STOA_LOG_FORMAT": "json",
    }
    ended, output = await forked.run(("admin", *arguments), environment)
    assert ended == status, output
    return output
