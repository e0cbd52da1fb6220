"""Calls of tools are counted once each, whoever makes them and however the attempt ends."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from app.stopping import RunStop
from tests.support.deployment import GRAPHS
from tests.support.frames import new_thread, read_run, start_run
from tests.support.graphs.working import FOLDER, LOOK_SECONDS
from tests.support.model_server import Script, ToolCall
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service, running_worker

PATIENCE = 60


@pytest.fixture(scope="module")
async def service(postgres: PostgresServer) -> AsyncIterator[RunningService]:
    async with running_service(postgres, graphs=GRAPHS, worker=False) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    return tmp_path


async def usage(client: httpx.AsyncClient) -> tuple[int, int]:
    """Runs and calls of tools."""
    total = (await client.get("/me/usage")).json()["total"]
    return total["runs"], total["tool_calls"]


async def use_tools(service: RunningService, client: httpx.AsyncClient, *names: str) -> str:
    """Have the agent call its tool that changes something, once under each name."""
    calls = tuple(ToolCall(name="append", arguments={"name": name}) for name in names)
    service.model.enqueue(Script(tool_calls=calls))
    return await start_run(client, await new_thread(client), "do it", assistant="working")


async def appearance(file: Path) -> None:
    async with asyncio.timeout(PATIENCE):
        while not file.exists():  # noqa: ASYNC110 - a file has no event
            await asyncio.sleep(LOOK_SECONDS)


async def test_all_of_a_graph_of_an_operators_own(service: RunningService) -> None:
    client = service.client("maker")
    async with running_worker(service.settings):
        graph = {"found": list[str]()}
        run = await start_run(
            client, await new_thread(client), assistant="tooling", graph_input=graph
        )
        last = (await read_run(client, run))[-1]
    assert last.data["status"] == "success"
    assert await usage(client) == (1, 4)


async def test_those_of_a_run_that_is_cancelled(service: RunningService, folder: Path) -> None:
    client = service.client("stopper")
    async with running_worker(service.settings):
        run = await use_tools(service, client, "a", "b")
        await appearance(folder / "b.begun")
        assert (await client.post(f"{run}/cancel")).is_success
        for name in "ab":  # or the run might come to its end before
            (folder / f"{name}.go").touch()
        await read_run(client, run)
    assert (await client.get(run)).json()["state"] == "cancelled"
    assert await usage(client) == (1, 2)


async def test_those_before_a_worker_is_told_to_end_and_those_after(
    service: RunningService, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = service.client("mover")
    drain, is_draining = RunStop.drain, asyncio.Event()

    def drained(stop: RunStop) -> None:
        drain(stop)
        is_draining.set()

    monkeypatch.setattr(RunStop, "drain", drained)
    async with asyncio.timeout(PATIENCE), running_worker(service.settings) as ended:
        run = await use_tools(service, client, "a")
        await appearance(folder / "a.begun")
        os.kill(os.getpid(), signal.SIGTERM)
        await is_draining.wait()
        (folder / "a.go").touch()
        await ended.wait()
    assert (await client.get(run)).json()["state"] == "pending"
    assert await usage(client) == (1, 1)
    (folder / "b.go").touch()
    service.model.enqueue(Script(tool_calls=(ToolCall(name="append", arguments={"name": "b"}),)))
    async with running_worker(service.settings):
        assert (await read_run(client, run))[-1].data["status"] == "success"
    assert (await client.get(run)).json()["attempt"] == 2
    assert await usage(client) == (1, 2)
