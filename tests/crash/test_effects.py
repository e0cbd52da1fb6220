"""What the whole ledger is for: workers are killed at random, and each effect happens once.

The servers are the example's, by stdio (they die with their worker) and by HTTP. Some calls need an
approval, some are made again by themselves under their key, some only when their person says so.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.crash.stage import Stage
from tests.crash.turns import World, scripted
from tests.support.deployment import STEADY_LEASE
from tests.support.faulty.fault import Fault
from tests.support.processes import StoaProcess
from tests.support.tool_servers.tickets import SOURCE, TicketsFile, arguments, tickets_over_http

log = logging.getLogger(__name__)

SEED = 6
KILLS = 4
KILLS_AT_NIGHT = 100
"""Of each way to a server."""
PEOPLE = {"child": ("Ann",), "far": ("Ben", "Cem")}
TICKETS_A_KILL = 25
"""More than are changed before one comes."""
EXACTLY = (
    Fault("tool.answered"),  # between the server's commit and the ledger
    Fault("tool.recorded"),  # between the ledger and the checkpoint
    Fault("tool.answered", nth=2),
    Fault("tool.recorded", nth=3),
)
"""Where each test has some of its workers die; the others die anywhere."""
STOA = {
    "trust": {"idempotent": ["create", "update"], "idempotency_ttl": 600},
    "approval": {"update": "always", "*": "never"},
}
"""``close`` may not be made again unless its person says so."""


def faults(random: Random, kills: int) -> list[Fault]:
    """Where the workers die."""
    anywhere = [
        Fault(
            random.choice(["token.first", "tool.begun", "checkpoint.before", "checkpoint.after"]),
            nth=random.randint(1, 4),
            later=random.uniform(0.0, 0.05),
        )
        for _ in range(kills - kills // 2)
    ]
    chosen = [*(EXACTLY[n % len(EXACTLY)] for n in range(kills // 2)), *anywhere]
    random.shuffle(chosen)
    return chosen


@pytest.fixture(params=["child", "far"], ids=["stdio", "HTTP"])
def server(request: pytest.FixtureRequest) -> str:
    """Which server the people use; that by stdio is another process for each worker."""
    return str(request.param)


@pytest.fixture
def file(tmp_path: Path) -> TicketsFile:
    return TicketsFile(tmp_path / "tickets.db")


@pytest.fixture
async def settings(tmp_path: Path, server: str, file: TicketsFile) -> AsyncIterator[dict[str, str]]:
    async with AsyncExitStack() as stack:
        entry: dict[str, Any] = {
            "command": sys.executable,
            "args": list(arguments(file.path)),
            "env": {"PYTHONPATH": str(SOURCE.parent)},
        }
        if server == "far":
            entry = {"url": await stack.enter_async_context(tickets_over_http(file.path))}
        catalogue = tmp_path / "mcp.json"
        entries = {server: {**entry, "stoa": STOA}}
        catalogue.write_text(json.dumps({"mcpServers": entries}), encoding="utf-8")
        yield {
            "STOA_MCP_CONFIG": str(catalogue),
            "STOA_MCP_FOLDER": str(tmp_path / "mcp"),
            "STOA_MCP_SANDBOX": "none",
            "STOA_MAX_ATTEMPTS": "1000",
            "STOA_MODEL_CONTEXT": "16384",
            **STEADY_LEASE,
        }


class TestWorkersThatAreKilledWhileTheirToolsChangeTheWorld:
    @pytest.mark.timeout(3600)
    async def test_leave_each_effect_done_once_and_its_first_result_told(
        self,
        stage: Stage,
        server: str,
        file: TicketsFile,
        settings: dict[str, str],
        nightly: bool,
    ) -> None:
        kills = KILLS_AT_NIGHT if nightly else KILLS
        random = Random(f"{server} {SEED}")
        world = World(server, file, random)
        world.open_tickets(TICKETS_A_KILL * kills)
        stage.deployment.model.answer_with(scripted)
        web = await stage.open_web()
        over = asyncio.Event()
        async with asyncio.TaskGroup() as people:
            for name in PEOPLE[server]:
                client = stage.deployment.http(name, web)
                people.create_task(world.keep_talking(client, over))
            workers = await die_one_after_the_other(stage, faults(random, kills), settings)
            over.set()
        world.assert_once([each.body for each in stage.deployment.model.requests])
        async with stage.deployment.superuser() as database:
            repeated = await database.fetchval(
                "SELECT count(*) FROM effects WHERE server = $1 AND sent > 1", server
            )
        assert repeated > 0
        assert world.approved > 0
        log.info(
            "%d kills, %d turns, %d calls, %d sent again, %d approvals, %d doubts",
            *(kills, len(world.results), len(world.notes), repeated),
            *(world.approved, world.doubted),
        )
        for worker in workers:
            await worker.kill()


async def die_one_after_the_other(
    stage: Stage, faults: list[Fault], settings: dict[str, str]
) -> list[StoaProcess]:
    """Have workers fail, each as soon as the one before has ended; returns the last, that live."""
    deployment = stage.deployment
    current = await deployment.prepare_faulty_worker(faults[0], **settings)
    await current.let_go()
    for fault in faults[1:]:
        coming = await deployment.prepare_faulty_worker(fault, **settings)
        await current.died()
        await coming.let_go()
        await deployment.lease_over(current)
        current = coming
    rescuers = [await deployment.prepare_worker(**settings) for _ in range(2)]
    await current.died()
    for rescuer in rescuers:
        await rescuer.let_go()
    await deployment.lease_over(current)
    return rescuers
