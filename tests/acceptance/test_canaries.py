"""Whatever is said anywhere is found in nothing that operators read, and in no error.

A canary stands in every input of real processes: in whatever clients send, well or badly, in what
the model and tool servers say, in names and keys, and in rows that PostgreSQL quotes when it
refuses them. All that these processes write is searched, and the traces that they send.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.acceptance.canaries import SECRET, SENTENCE, said_everywhere
from tests.support import leaks
from tests.support.collector import collector
from tests.support.deployment import Deployment, deployed
from tests.support.frames import new_thread, read_run, start_run
from tests.support.held_ports import held_port
from tests.support.model_server import Script, ToolCall
from tests.support.processes import StoaProcess
from tests.support.tenancy import TestDatabase
from tests.support.tool_servers.http import http_tool_server
from tests.support.vaults import keys_of

NEAR = Path(__file__).parents[1] / "support" / "tool_servers" / "stdio.py"
CALLS = (
    ToolCall(name="far__add", arguments={"a": SENTENCE, "b": 2}),
    ToolCall(name="near__note", arguments={"text": SENTENCE}),
    ToolCall(name="near__fail", arguments={SENTENCE: SENTENCE}),
    ToolCall(name="remember", arguments={"content": SENTENCE}),
    ToolCall(name="recall", arguments={"query": SENTENCE}),
    ToolCall(name="fetch", arguments={"url": f"https://{SECRET}.invalid/{SECRET}?{SECRET}"}),
    ToolCall(name=SECRET, arguments={"a": SENTENCE}),
)
WRONG = {
    "that fails": Script(status=500, error=SENTENCE),
    "that refuses": Script(status=400, error=SENTENCE),
    "that fails in mid-answer": Script(text=SENTENCE, error_at=1, error=SENTENCE),
    "that says what is no JSON": Script(text=SENTENCE, malformed_at=1),
    "that goes away": Script(text=SENTENCE, reset_at=2),
}


@dataclass
class World:
    """Processes that show all that they can, and somebody with a canary for a name."""

    deployment: Deployment
    web: StoaProcess
    metrics: list[str]
    _read: dict[Path, int] = field(default_factory=dict)

    def client(self, person: str) -> httpx.AsyncClient:
        """A client of somebody's whose name and address are canaries too. The caller closes it."""
        email = f"{SECRET}@{SECRET}.test"
        headers = self.deployment.issuer.headers(person, name=SENTENCE, email=email)
        return httpx.AsyncClient(
            base_url=self.web.url, headers=headers, timeout=60, trust_env=False
        )

    async def leaks(self) -> list[str]:
        """What is found in all that operators can read since the last look."""
        found = []
        for path in self.deployment.logs.iterdir():
            log = path.read_text(encoding="utf-8", errors="replace")
            found += leaks.search("log", log[self._read.get(path, 0) :], path.name)
            self._read[path] = len(log)
        async with httpx.AsyncClient(trust_env=False) as http:
            for url in self.metrics:
                found += leaks.search("metrics", (await http.get(url)).text, url)
        return found

    @asynccontextmanager
    async def refusing(self, table: str) -> AsyncIterator[None]:
        """PostgreSQL takes no row of a table within, and says so with the whole row."""
        async with self.deployment.superuser() as superuser:
            await superuser.execute(
                f"ALTER TABLE {table} ADD CONSTRAINT refused CHECK (false) NOT VALID"
            )
            try:
                yield
            finally:
                await superuser.execute(f"ALTER TABLE {table} DROP CONSTRAINT refused")


@pytest.fixture(scope="module")
async def world(
    template: TestDatabase, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    folder = tmp_path_factory.mktemp("said")
    (folder / "logs").mkdir()
    with ExitStack() as held:
        ports = [held.enter_context(held_port()) for _ in range(2)]
        async with (
            collector() as traces,
            http_tool_server() as far,
            deployed(template, folder / "logs") as deployment,
        ):
            near = {"command": sys.executable, "args": ["-I", "-S", str(NEAR), "noisy"]}
            servers = {"far": {"url": far.url}, "near": near}
            (folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
            settings: dict[str, Any] = {
                "STOA_MCP_CONFIG": str(folder / "mcp.json"),
                "STOA_MCP_FOLDER": str(folder / "mcp"),
                "STOA_MCP_SANDBOX": "none",
                "STOA_VAULT_KEYS": keys_of("k1"),
                "STOA_APPROVAL_DEFAULT": "never",
                "STOA_APPROVAL_FETCH": "never",
                "STOA_REQUESTS_PER_MINUTE": "1000000",
                "STOA_OTLP_URL": traces.url,
                "STOA_WEB_METRICS_PORT": str(ports[0]),
                "STOA_METRICS_PORT": str(ports[1]),
            }
            web = await deployment.start_web(**settings)
            await deployment.start_worker(**settings)
            metrics = [f"http://127.0.0.1:{port}/metrics" for port in ports]
            yield World(deployment, web, metrics)


@pytest.fixture
async def person(world: World) -> AsyncIterator[httpx.AsyncClient]:
    """Somebody new."""
    async with world.client(f"somebody {SECRET} {uuid4()}") as client:
        yield client


async def answered(world: World, person: httpx.AsyncClient, *scripts: Script) -> str:
    """How a run stands at its end that was asked with a canary."""
    world.deployment.model.enqueue(*scripts)
    thread = await new_thread(person)
    run = await start_run(
        person,
        thread,
        SENTENCE,
        metadata={SENTENCE: SENTENCE},
        config={"tags": [SENTENCE], "metadata": {SENTENCE: SENTENCE}},
    )
    await read_run(person, run)
    state: str = (await person.get(run)).json()["state"]
    return state


class TestACanary:
    async def test_that_is_sent_to_every_route_is_told_on_by_none(self, world: World) -> None:
        async with world.client(f"a wanderer {SECRET}") as wanderer:
            thread = await new_thread(wanderer)
            run = await start_run(wanderer, thread, SENTENCE)
            await read_run(wanderer, run)
            known = {"thread_id": thread, "run_id": run.rpartition("/")[2], "server": "far"}
            document = (await wanderer.get("/openapi.json")).json()
            statuses = set()
            for said in said_everywhere(document, known):
                answer = await wanderer.request(
                    said.method,
                    said.path,
                    params=said.query,
                    headers=said.headers,
                    content=said.content,
                )
                assert answer.status_code < 500, (said, answer.text)
                statuses.add(answer.status_code)
            # What was begun on the way would take the scripts of the next test.
            await wanderer.post("/runs/cancel", json={"status": "all"})
        assert statuses >= {200, 400, 403, 404, 415, 422}
        assert await world.leaks() == []

    @pytest.mark.parametrize(
        "headers",
        [
            {"authorization": f"Bearer {SECRET}"},
            {"authorization": f"Bearer eyJ{SECRET}.{SECRET}.{SECRET}"},
            {"authorization": f"Basic {SECRET}"},
            {"x-request-id": SECRET},
            {"origin": f"https://{SECRET}.test"},
            {"cookie": f"stoa={SECRET}"},
            {"user-agent": SENTENCE},
            {"idempotency-key": SECRET},
            {"last-event-id": SECRET},
            {"traceparent": SECRET},
        ],
        ids=lambda headers: next(iter(headers)),
    )
    async def test_in_a_header_is_told_on_by_nobody(
        self, world: World, person: httpx.AsyncClient, headers: dict[str, str]
    ) -> None:
        thread = await new_thread(person)
        await person.post("/threads", json={}, headers=headers)
        await person.get(f"/threads/{thread}/{SECRET}?{SECRET}={SECRET}", headers=headers)
        assert await world.leaks() == []

    async def test_in_what_tools_are_given_and_answer_is_told_on_by_nobody(
        self, world: World, person: httpx.AsyncClient
    ) -> None:
        assert (
            await answered(world, person, Script(tool_calls=CALLS), Script(text=SENTENCE))
            == "success"
        )
        assert await world.leaks() == []

    @pytest.mark.parametrize("how", WRONG)
    async def test_in_what_a_model_says_is_told_on_by_nobody(
        self, world: World, person: httpx.AsyncClient, how: str
    ) -> None:
        await answered(world, person, *[WRONG[how]] * 4)
        world.deployment.model.forget_scripts()
        assert await world.leaks() == []

    async def test_in_a_row_that_postgres_refuses_is_told_on_by_neither_process(
        self, world: World, person: httpx.AsyncClient
    ) -> None:
        thread = await new_thread(person)
        async with world.refusing("threads"):
            answer = await person.post("/threads", json={"metadata": {SENTENCE: SENTENCE}})
        assert (answer.status_code, answer.json()["code"]) == (500, "internal")
        assert "request failed" in world.web.output
        world.deployment.model.enqueue(Script(text=SENTENCE))
        async with world.refusing("checkpoint_writes"):
            run = await start_run(person, thread, SENTENCE)
            await read_run(person, run)
        assert (await person.get(run)).json()["state"] == "error"
        assert await world.leaks() == []
