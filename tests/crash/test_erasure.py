"""Somebody leaves with everything of theirs under way: nothing is left, and nothing comes back."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import psutil
import pytest

from app.tools.stdio.folders import owner_folder
from tenancy.principal import UserId
from tests.crash.stage import Stage
from tests.crash.traces import Traces
from tests.support.deployment import STEADY_LEASE, Deployment
from tests.support.faulty.fault import Fault
from tests.support.frames import new_thread, read_run, start_run
from tests.support.model_server import Body, Script, ToolCall, last_user_text
from tests.support.processes import PATIENCE, StoaProcess
from tests.support.tool_servers.pools import QUICK
from tests.support.tool_servers.recording import RecordingServer, recording_server
from tests.support.vaults import keys_of

WORD = "kumquat4711zebra"
"""Nobody else says it."""
DEATHS = (
    "erasure.recorded",
    "erasure.revoked",
    "erasure.keys_destroyed",
    "erasure.stopped",
    "erasure.batch",
    "erasure.deleted",
    "erasure.verified",
    "erasure.signed",
)


def scripted(body: Body) -> Script:
    """What the model does is what the person says."""
    messages = body["messages"]
    assert isinstance(messages, list)
    if messages[-1]["role"] != "user":
        return Script(text=f"It is done, {WORD}.")
    match last_user_text(body).split()[0]:
        case "Use":
            calls = (_call("child__note"), _call("far__read"))
            return Script(tool_calls=calls)
        case "Ask":
            return Script(tool_calls=(_call("far__write"),))
        case "Stall":
            return Script(text=f"I begin with {WORD} and never end.", stall_at=4)
        case _:
            return Script(text="Hello.")


def _call(tool: str) -> ToolCall:
    return ToolCall(name=tool, arguments={"text": WORD})


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[RecordingServer]:
    async with recording_server() as running:
        running.offer("read", f"it says {WORD}")
        running.offer("write", "it was written")
        yield running


@dataclass
class Place:
    """A host of the service's: its folders, and how its processes are set up."""

    folder: Path
    settings: dict[str, Any]
    folders: list[Path] = field(default_factory=list)

    @property
    def people(self) -> Path:
        """Where people's tool servers keep what they keep."""
        return self.folder / "mcp"


@pytest.fixture
def place(tmp_path: Path, server: RecordingServer, stage: Stage) -> Place:
    child = {"command": sys.executable, "args": ["-I", "-S", str(QUICK)]}
    far = {
        "url": server.url,
        "stoa": {"approval": {"write": "always"}, "credential": {"kind": "header"}},
    }
    catalogue = tmp_path / "mcp.json"
    catalogue.write_text(json.dumps({"mcpServers": {"child": child, "far": far}}))
    stage.deployment.model.answer_with(scripted)
    settings = {
        "STOA_MCP_CONFIG": str(catalogue),
        "STOA_MCP_FOLDER": str(tmp_path / "mcp"),
        "STOA_MCP_SANDBOX": "none",
        "STOA_VAULT_KEYS": keys_of("vault"),
        "STOA_SIGNING_KEYS": keys_of("signing"),
        "STOA_TOMBSTONE_FOLDER": str(tmp_path / "tombstones"),
        "STOA_SEAT_COOLDOWN_SECONDS": "0.2",
        **STEADY_LEASE,
    }
    return Place(tmp_path, settings, [tmp_path, stage.deployment.logs])


@dataclass
class Leaver:
    """Somebody who will leave, and what the service knows them by."""

    client: httpx.AsyncClient
    user_id: UUID
    erasure: str = ""

    @classmethod
    async def arrived(cls, stage: Stage, web: StoaProcess, name: str) -> Leaver:
        """Sign in, set a key, and have something remembered."""
        client = stage.deployment.http(name, web)
        me = (await client.get("/me")).json()
        await accepted(client.put("/connections/far/key", json={"key": WORD}))
        kept = {"namespace": ["notes"], "key": "one", "value": {"text": f"I say {WORD}"}}
        await accepted(client.put("/store/items", json=kept))
        return cls(client, UUID(me["user_id"]))

    async def say(self, text: str, thread_id: str | None = None, **fields: Any) -> str:
        """Say something; returns where the run is."""
        thread_id = thread_id or await new_thread(self.client)
        return await start_run(self.client, thread_id, f"{text} {WORD}", **fields)

    async def hear(self, location: str) -> str:
        """How a run ends."""
        return str((await read_run(self.client, location))[-1].data["status"])

    async def leave(self) -> None:
        """Begin to."""
        answer = await accepted(self.client.delete("/me"))
        self.erasure = answer.headers["location"]

    async def left(self) -> dict[str, Any]:
        """The erasure, once it has come to its end."""
        async with asyncio.timeout(PATIENCE):
            while True:
                erasure: dict[str, Any] = (await self.client.get(self.erasure)).json()
                if erasure["state"] == "done":
                    return erasure
                await asyncio.sleep(0.05)


async def accepted(asked: Any) -> httpx.Response:
    answer: httpx.Response = await asked
    assert answer.is_success, answer.text
    return answer


def children_of(*workers: StoaProcess) -> list[psutil.Process]:
    """The tool servers that they have started."""
    found = [
        child
        for worker in workers
        for child in psutil.Process(worker.process.pid).children(recursive=True)
    ]
    return [each for each in found if is_server(each)]


def is_server(process: psutil.Process) -> bool:
    """Whether it is one, and still there."""
    try:
        return str(QUICK) in process.cmdline()
    except psutil.NoSuchProcess:
        return False


def connected(worker: StoaProcess, server: RecordingServer) -> bool:
    """Whether a worker has a connection to the server by HTTP."""
    port = int(server.url.split(":")[2].split("/")[0])
    connections = psutil.Process(worker.process.pid).net_connections("tcp")
    return port in {getattr(each.raddr, "port", None) for each in connections}


async def die_at(point: str, deployment: Deployment, settings: dict[str, Any]) -> None:
    """Have a worker die at a point, and the next one go on, as if its lease had run out."""
    doomed = await deployment.start_faulty_worker(Fault(point), **settings)
    await doomed.died()
    await deployment.lease_over(doomed)
    async with deployment.superuser() as database:
        await database.execute("UPDATE erasures SET working_until = clock_timestamp()")


async def under_way(
    stage: Stage, place: Place, leaver: Leaver
) -> tuple[StoaProcess, StoaProcess, StoaProcess]:
    """Three workers with connections of theirs open, two of them in the midst of an answer.

    Besides, a run waits for them, one for another to end, and one for its time.
    """
    deployment, stalls = stage.deployment, stage.deployment.stalls
    one_at_a_time = {**place.settings, "STOA_WORKER_CONCURRENCY": "1"}
    zombie = await deployment.start_worker(**one_at_a_time)
    assert await leaver.hear(await leaver.say("Use")) == "success"
    busy = await new_thread(leaver.client)
    await leaver.say("Stall", busy)
    await deployment.model.wait_for_stall(stalls + 1)
    first = await deployment.start_worker(**one_at_a_time)
    assert await leaver.hear(await leaver.say("Use")) == "success"
    assert await leaver.hear(await leaver.say("Ask")) == "interrupted"
    await leaver.say("Stall")
    await deployment.model.wait_for_stall(stalls + 2)
    second = await deployment.start_worker(**one_at_a_time)
    assert await leaver.hear(await leaver.say("Use")) == "success"
    await leaver.say("Wait", busy, multitask_strategy="enqueue")
    await leaver.say("Later", after_seconds=3600)
    return zombie, first, second


class TestSomebodyWhoLeavesWithEverythingUnderWay:
    async def test_leaves_nothing_behind_and_nothing_of_them_comes_back(
        self, stage: Stage, place: Place, server: RecordingServer
    ) -> None:
        deployment = stage.deployment
        web = await deployment.start_web(**place.settings)
        leaver = await Leaver.arrived(stage, web, "leaver")
        traces = Traces(leaver.user_id, WORD)
        zombie, first, second = workers = await under_way(stage, place, leaver)
        assert len(children_of(*workers)) == 3
        assert all(connected(each, server) for each in workers)
        folder = owner_folder(place.people, UserId(leaver.user_id))
        async with deployment.superuser() as database:
            states = await database.fetch("SELECT state::text FROM runs WHERE ended_at IS NULL")
            assert sorted(row["state"] for row in states) == [
                *("pending", "pending", "running", "running", "waiting"),
            ]
            before = await traces.found_in_database(database)
            assert {"users", "run_events", "checkpoint_blobs", "store", "approvals"} <= set(before)
            assert traces.found_in_folders([folder])

            zombie.freeze()
            async with leaver.client.stream("GET", "/events") as events:
                await leaver.leave()
                await deployment.lease_over(zombie)
                async for _ in events.aiter_raw():
                    pass  # to its end
            erasure = await leaver.left()

            assert not folder.exists()
            assert not children_of(first, second)
            assert not connected(first, server)
            assert not connected(second, server)
            assert await traces.found_in_database(database) == []
            zombie.thaw()
            async with asyncio.timeout(PATIENCE):
                assert await zombie.process.wait() == 1, zombie.output
            assert await traces.found_in_database(database) == []
        assert traces.found_in_folders(place.folders) == []
        assert set(erasure["remaining"].values()) == {0}
        assert (erasure["keys_destroyed"], erasure["folders_deleted"]) == (1, 1)

        # Others go on, and whoever comes back is somebody else.
        other = deployment.http("stayer", web)
        location = await start_run(other, await new_thread(other), "Hello")
        assert (await read_run(other, location))[-1].data["status"] == "success"
        again = (await leaver.client.get("/me")).json()
        assert again["user_id"] != str(leaver.user_id)
        assert (await leaver.client.get("/connections/far")).json()["state"] == "needs_key"
        await asyncio.gather(web.kill(), first.kill(), second.kill())
        for worker in (first, second):  # for which whoever leaves next would wait
            await deployment.lease_over(worker)


class TestAnErasure:
    async def test_comes_to_its_end_though_whoever_leads_it_dies_at_each_step(
        self, stage: Stage, place: Place
    ) -> None:
        deployment = stage.deployment
        web = await deployment.start_web(**place.settings)
        worker = await deployment.start_worker(**place.settings)
        leaver = await Leaver.arrived(stage, web, "patient")
        assert await leaver.hear(await leaver.say("Use")) == "success"
        await worker.kill()
        await deployment.lease_over(worker)
        counted = "SELECT count(*) FROM {} WHERE user_id = $1"
        tables = ("threads", "runs", "run_events", "checkpoint_blobs", "connections", "store")
        async with deployment.superuser() as database:
            there = {
                table: await database.fetchval(counted.format(table), leaver.user_id)
                for table in tables
            }
        assert all(there.values())

        await leaver.leave()
        for point in DEATHS:
            await die_at(point, deployment, place.settings)
        last = await deployment.start_worker(**place.settings)
        erasure = await leaver.left()

        # Nothing was counted twice, or lost, by those who did a step that somebody had done.
        assert {table: erasure["deleted"][table] for table in tables} == there
        assert set(erasure["remaining"].values()) == {0}
        assert erasure["keys_destroyed"] == 1
        traces = Traces(leaver.user_id, WORD)
        async with deployment.superuser() as database:
            assert await traces.found_in_database(database) == []
        assert traces.found_in_folders(place.folders) == []
        await asyncio.gather(web.kill(), last.kill())
