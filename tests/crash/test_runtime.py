"""What the service lives by dies and comes back: every open page is told both."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from app.dev.postgres import EmbeddedPostgres
from tests.crash.stage import Stage
from tests.crash.test_postgres import server as server
from tests.crash.test_postgres import staged_on
from tests.support.deployment import STEADY_LEASE
from tests.support.frames import Frame, follow
from tests.support.processes import StoaProcess

PATIENCE = 120.0
_LOOK_SECONDS = 0.02
READERS = 3
"""Of each web process."""
MODEL = "model:default"
CHILD = Path(__file__).parents[1] / "support" / "tool_servers" / "stdio.py"
LAST_LOOK = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
BEGINNING = (
    "SELECT count(*) FROM workers WHERE ready_at IS NULL AND lease_until > clock_timestamp()"
)
HOLD_MODELS = "SELECT FROM models FOR UPDATE"
"""A worker has its lease by then, and waits for this before it has passed its checks."""

Part = dict[str, Any]


class Reader:
    """An open page: what its stream has told of the parts."""

    def __init__(self, client: httpx.AsyncClient, frames: AsyncIterator[Frame]) -> None:
        self.client = client
        self.told: list[dict[str, Part]] = []
        self._frames = frames

    async def until(self, name: str, status: str) -> Part:
        """The part, once the stream says that it stands so, or has said so last."""
        async with asyncio.timeout(PATIENCE):
            while not self.told or self.told[-1].get(name, {}).get("status") != status:
                await self._next()
        return self.told[-1][name]

    async def _next(self) -> None:
        while (frame := await anext(self._frames)).event != "runtime":
            pass
        self.told.append({each["component"]: each for each in frame.data["components"]})

    def has_told_of(self, name: str, since: Part) -> list[tuple[str, int]]:
        """How a part stood from then on, each time that it stood otherwise than before."""
        parts = [each[name] for each in self.told if name in each]
        told = [(each["status"], each["version"]) for each in parts]
        told = [each for each in told if each[1] >= since["version"]]
        return [each for n, each in enumerate(told) if n == 0 or told[n - 1] != each]


class Pages:
    """Open pages of several people, at several web processes."""

    def __init__(self, readers: list[Reader]) -> None:
        self.readers = readers

    async def until(self, name: str, status: str) -> Part:
        """The part, once every page says that it stands so: all say the same of it."""
        told = await asyncio.gather(*(each.until(name, status) for each in self.readers))
        if name != "database":  # of which each process has looked by itself
            assert all(each == told[0] for each in told)
        return told[0]


@asynccontextmanager
async def opened(stage: Stage, *webs: StoaProcess) -> AsyncIterator[Pages]:
    people = [stage.deployment.http(f"reader {n}", web) for web in webs for n in range(READERS)]
    async with asyncio.TaskGroup() as opening:
        pages = [opening.create_task(_open(each)) for each in people]
    readers = [page.result() for page in pages]
    try:
        yield Pages([reader for reader, _ in readers])
    finally:
        for _, response in readers:
            await response.aclose()


async def _open(client: httpx.AsyncClient) -> tuple[Reader, httpx.Response]:
    response = await client.send(client.build_request("GET", "/events"), stream=True)
    assert response.status_code == 200
    return Reader(client, follow(response)), response


async def until(look: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await look():  # noqa: ASYNC110 - another process
            await asyncio.sleep(_LOOK_SECONDS)


async def runtime_of(client: httpx.AsyncClient) -> dict[str, Part]:
    answer = await client.get("/runtime")
    assert answer.status_code == 200, answer.text
    return {each["component"]: each for each in answer.json()["components"]}


async def looked_again(stage: Stage, client: httpx.AsyncClient) -> dict[str, Part]:
    """The parts as its web process found them by a look that began after this did."""
    async with stage.deployment.superuser() as connection:
        now = await connection.fetchval(LAST_LOOK)
    found: dict[str, Part] = {}

    async def is_newer() -> bool:
        found.update(await runtime_of(client))
        return bool(found["database"]["version"] > now)

    await until(is_newer)
    return found


@pytest.fixture(scope="module")
async def webs(stage: Stage) -> list[StoaProcess]:
    return list(await asyncio.gather(stage.open_web(), stage.open_web()))


class TestTheOnlyWorkerThatIsKilled:
    async def test_is_missed_on_every_page_until_another_has_passed_its_checks(
        self, stage: Stage, webs: list[StoaProcess]
    ) -> None:
        worker = await stage.deployment.start_worker(**STEADY_LEASE)
        async with opened(stage, *webs) as pages:
            before = await pages.until("workers", "available")
            await worker.kill()
            assert (await looked_again(stage, pages.readers[0].client))["workers"] == before
            over, at = await stage.deployment.lease_over(worker), time.monotonic()
            lost = await pages.until("workers", "unavailable")
            print(f"every page knew {time.monotonic() - at:.2f} s after the lease")  # noqa: T201
            assert lost["reason"] == "worker_lost"
            assert datetime.fromisoformat(lost["occurred_at"]) == over
            # Whoever comes now is told the same, in whatever process, as the page is opened.
            for web in webs:
                me = await stage.deployment.http("a latecomer", web).get("/me")
                assert lost in me.json()["runtime"]["components"]

            async with stage.deployment.superuser() as holding, holding.transaction():
                await holding.execute(HOLD_MODELS)
                beginning = asyncio.create_task(stage.deployment.start_worker(**STEADY_LEASE))
                await until(lambda: _is_beginning(stage))
                for reader in (pages.readers[0], pages.readers[-1]):
                    assert (await looked_again(stage, reader.client))["workers"] == lost
            worker = await beginning
            back = await pages.until("workers", "available")
            assert back["version"] == lost["version"] + 1
            for reader in pages.readers:
                told = [status for status, _ in reader.has_told_of("workers", before)]
                assert told == ["available", "unavailable", "available"]
            assert await worker.terminate() == 0


async def _is_beginning(stage: Stage) -> bool:
    async with stage.deployment.superuser() as connection:
        return bool(await connection.fetchval(BEGINNING))


class TestAWorkerThatIsDrained:
    async def test_is_not_missed_while_another_works_but_the_last_one_is(
        self, stage: Stage, webs: list[StoaProcess]
    ) -> None:
        one, other = await asyncio.gather(
            *(stage.deployment.start_worker(**STEADY_LEASE) for _ in range(2))
        )
        async with opened(stage, *webs) as pages:
            before = await pages.until("workers", "available")
            assert await one.terminate() == 0
            for reader in (pages.readers[0], pages.readers[-1]):
                assert (await looked_again(stage, reader.client))["workers"] == before
            assert await other.terminate() == 0
            gone = await pages.until("workers", "unavailable")
            assert gone["reason"] == "no_workers"
            assert gone["version"] == before["version"] + 1
            for reader in pages.readers:
                told = [status for status, _ in reader.has_told_of("workers", before)]
                assert told == ["available", "unavailable"]


class TestTheModelServer:
    async def test_that_is_stopped_is_missed_on_every_page_until_it_is_back(
        self, stage: Stage, webs: list[StoaProcess]
    ) -> None:
        """Nobody asks it anything meanwhile."""
        worker = await stage.deployment.start_worker(**STEADY_LEASE)
        async with opened(stage, *webs) as pages:
            before = await pages.until(MODEL, "available")
            await stage.deployment.model.stop()
            at = time.monotonic()
            try:
                away = await pages.until(MODEL, "unavailable")
                print(f"every page knew after {time.monotonic() - at:.2f} s")  # noqa: T201
            finally:
                await stage.deployment.restart_model()
            assert away["reason"] == "ollama_unreachable"
            back = await pages.until(MODEL, "available")
            assert [each["version"] - before["version"] for each in (away, back)] == [1, 2]
            assert await worker.terminate() == 0


class TestAPersonsToolServer:
    async def test_that_is_killed_is_missed_by_its_person_only_until_they_reconnect(
        self, stage: Stage, tmp_path: Path
    ) -> None:
        child = {"command": sys.executable, "args": ["-I", "-S", str(CHILD)]}
        catalogue = tmp_path / "mcp.json"
        catalogue.write_text(json.dumps({"mcpServers": {"notes": child}}), encoding="utf-8")
        tools: dict[str, Any] = {
            "STOA_MCP_CONFIG": str(catalogue),
            "STOA_MCP_FOLDER": str(tmp_path / "mcp"),
            "STOA_MCP_SANDBOX": "none",
        }
        web, worker = await asyncio.gather(
            stage.deployment.start_web(**tools),
            stage.deployment.start_worker(**tools, **STEADY_LEASE),
        )
        name = "connection:notes"
        async with opened(stage, web) as pages:
            alice, bob, _ = pages.readers
            await alice.client.post("/connections/notes/reconnect")
            works = await alice.until(name, "available")
            hers = children_of(worker)
            await bob.client.post("/connections/notes/reconnect")
            his = await bob.until(name, "available")

            for each in hers:
                each.kill()
            fails = await alice.until(name, "unavailable")
            assert fails["reason"] == "mcp_exited"
            assert fails["version"] > works["version"]
            assert (await runtime_of(alice.client))[name] == fails
            assert (await runtime_of(bob.client))[name] == his

            answer = await alice.client.post("/connections/notes/reconnect")
            assert answer.is_success
            back = await alice.until(name, "available")
            assert back["version"] > fails["version"]
            assert bob.has_told_of(name, his) == [("available", his["version"])]
            assert not any(name in told for told in pages.readers[2].told)
        assert await worker.terminate() == 0


def children_of(worker: StoaProcess) -> list[psutil.Process]:
    """The tool servers that a worker has started."""
    family = psutil.Process(worker.process.pid).children(recursive=True)
    found = [each for each in family if str(CHILD) in each.cmdline()]
    assert found
    return found


class TestPostgres:
    async def test_that_goes_away_is_missed_on_every_page_until_it_is_back(
        self, server: EmbeddedPostgres, tmp_path: Path
    ) -> None:
        async with staged_on(server, tmp_path) as stage:
            web = await stage.open_web()
            async with opened(stage, web) as pages:
                before = await pages.until("database", "available")
                await server.stop(hurry=True)
                away = await pages.until("database", "unavailable")
                assert away["reason"] == "database_unreachable"
                assert (await runtime_of(pages.readers[0].client))["database"] == away
                await server.start()
                back = await pages.until("database", "available")
                assert before["version"] < away["version"] < back["version"]
            await stage.owner.dispose()
