"""What the whole ledger is for: workers are killed at random, and each effect happens once.

The servers are the example's, by stdio (they die with their worker) and by HTTP. Some calls need an
approval, some are made again by themselves under their key, some only when their person says so.
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.crash.stage import Stage
from tests.crash.turns import Turn, World, keep_talking, scripted
from tests.support.deployment import QUICK_LEASE
from tests.support.faulty.fault import Fault
from tests.support.processes import PATIENCE, StoaProcess
from tests.support.tool_servers.tickets import SOURCE, TicketsFile, arguments, tickets_over_http

log = logging.getLogger(__name__)

SEED = 6
KILLS = 8
KILLS_AT_NIGHT = 200
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


@pytest.fixture
async def files(tmp_path: Path) -> dict[str, TicketsFile]:
    return {way: TicketsFile(tmp_path / f"{way}.db") for way in ("child", "far")}


@pytest.fixture
async def settings(tmp_path: Path, files: dict[str, TicketsFile]) -> AsyncIterator[dict[str, str]]:
    promised = ("--idempotency-ttl", "600")
    async with tickets_over_http(files["far"].path, *promised) as url:
        child: dict[str, Any] = {
            "command": sys.executable,
            "args": list(arguments(files["child"].path, *promised)),
            "env": {"PYTHONPATH": str(SOURCE.parent)},
        }
        servers: dict[str, dict[str, Any]] = {"child": child, "far": {"url": url}}
        catalogue = tmp_path / "mcp.json"
        entries = {name: {**entry, "stoa": STOA} for name, entry in servers.items()}
        catalogue.write_text(json.dumps({"mcpServers": entries}), encoding="utf-8")
        yield {
            "STOA_MCP_CONFIG": str(catalogue),
            "STOA_MCP_FOLDER": str(tmp_path / "mcp"),
            "STOA_MCP_SANDBOX": "none",
            "STOA_MAX_ATTEMPTS": "1000",
            "STOA_MODEL_CONTEXT": "16384",
            **QUICK_LEASE,
        }


class TestWorkersThatAreKilledWhileTheirToolsChangeTheWorld:
    @pytest.mark.timeout(3600)
    async def test_leave_each_effect_done_once_and_its_first_result_told(
        self,
        stage: Stage,
        files: dict[str, TicketsFile],
        settings: dict[str, str],
        nightly: bool,
    ) -> None:
        kills = KILLS_AT_NIGHT if nightly else KILLS
        random = Random(SEED)
        world = World(files, random)
        world.open_tickets(TICKETS_A_KILL * kills)
        stage.deployment.model.answer_with(scripted)
        web = await stage.open_web()
        results: dict[Turn, list[dict[str, Any]]] = {}
        over = asyncio.Event()
        async with asyncio.TaskGroup() as people:
            for name, server in {"Ann": "child", "Ben": "far", "Cem": "far"}.items():
                client = stage.deployment.http(name, web)
                people.create_task(keep_talking(world, client, server, over, results))
            await die_one_after_the_other(stage, faults(random, kills), settings)
            over.set()
        world.assert_once(results, [each.body for each in stage.deployment.model.requests])
        assert world.approved > 0
        log.info(
            "%d kills, %d turns, %d approvals, %d calls in doubt",
            *(kills, len(world.turns), world.approved, world.doubted),
        )


async def die_one_after_the_other(
    stage: Stage, faults: list[Fault], settings: dict[str, str]
) -> None:
    """Have workers fail, each as soon as the one before has ended; the last ones live."""
    deployment = stage.deployment
    current = await deployment.prepare_faulty_worker(faults[0], **settings)
    await current.let_go()
    for fault in faults[1:]:
        coming = await deployment.prepare_faulty_worker(fault, **settings)
        await gone(current)
        await coming.let_go()
        current = coming
    rescuers = [await deployment.prepare_worker(**settings) for _ in range(2)]
    await gone(current)
    for rescuer in rescuers:
        await rescuer.let_go()


async def gone(worker: StoaProcess) -> None:
    """Return once a worker was killed; on a busy machine one may lose its lease before."""
    async with asyncio.timeout(PATIENCE):
        status = await worker.process.wait()
    assert status == -signal.SIGKILL or "lost its lease" in worker.output, worker.output
