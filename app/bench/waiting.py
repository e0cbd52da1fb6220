"""``stoa bench waiting``: what runs cost that wait for their people.

People ask for tickets, and every call needs an approval. What web process, worker and database hold
is counted before, with all runs waiting, and when all were approved and have ended.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import httpcore
import httpx
import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from app.bench.approving import approve, ask, open_approvals
from app.bench.asking_model import SERVER, AskingModel
from app.bench.footprint import Footprint
from app.bench.model import MODEL
from app.bench.observed import FOLDER
from app.bench.service import BenchService, free_port, open_processes
from tenancy.database.engine import DatabaseSettings, create_engine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy.ext.asyncio import AsyncEngine

PEOPLE = 50
AT_ONCE = 40
WARM_UP = 80
"""Runs before anything is counted, at most: pools and caches are as large then as they will be."""
_LOOK_EVERY = 0.1
_PATIENCE = 600.0
_IDLE_SECONDS = 1
_ROOT = Path(__file__).parents[2]


@dataclass(slots=True)
class Waited:
    """What was counted, and how long it took."""

    runs: int
    footprints: dict[str, Footprint] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


async def bench_waiting(
    dsns: Mapping[str, str], owner_dsn: str, folder: Path, *, runs: int, settle_seconds: float
) -> Waited:
    """Measure, print a table and return what was measured.

    Args:
        dsns: ``STOA_…_DATABASE_URL`` settings of a migrated database.
        owner_dsn: a superuser's DSN of that database.
        folder: for files, and for sockets.
        runs: how many wait at once.
        settle_seconds: how long nothing happens before it is counted.
    """
    warm_up = min(WARM_UP, runs)
    waited = Waited(runs)
    file = folder / "tickets.db"
    async with _tickets(file) as url, AskingModel() as model:
        settings = _settings(model.url, url, folder)
        async with (
            open_processes(dsns, settings, program="app.bench.observed") as service,
            _desk(service, owner_dsn, min(PEOPLE, runs)) as desk,
        ):
            pids = {"web": service.web_pid, "worker": service.worker_pid}

            async def count(when: str) -> None:
                await asyncio.sleep(settle_seconds)
                waited.footprints[when] = await Footprint.of(pids, folder, desk.owner)

            await desk.ask(warm_up)
            await desk.approve()
            await count("before")
            waited.seconds["until all wait"] = await _timed(desk.ask(runs))
            await count("waiting")
            waited.seconds["until all have ended"] = await _timed(desk.approve())
            await count("after")
    _assert_made_once(file, warm_up + runs)
    Console().print(_table(waited))
    return waited


@dataclass(frozen=True, slots=True)
class _Desk:
    """The people, and a look at how their runs stand."""

    clients: list[httpx.AsyncClient]
    owner: AsyncEngine

    async def ask(self, runs: int) -> None:
        """Have so many runs begin; return when all of them wait."""
        await _at_once(self._start(number) for number in range(runs))
        await self._until(f"count(*) FILTER (WHERE state = 'waiting') = {runs}")

    async def approve(self) -> None:
        """Approve all that is asked; return when all runs have ended well."""
        asked = [
            (client, approval)
            for client in self.clients
            for approval in await open_approvals(client)
        ]
        await _at_once(approve(client, approval) for client, approval in asked)
        await self._until("bool_and(state = 'success')")

    async def _start(self, number: int) -> None:
        client = self.clients[number % len(self.clients)]
        body = {
            "assistant_id": "agent",
            "input": {"messages": [{"role": "user", "content": "The lamp is broken."}]},
            "if_not_exists": "create",
        }
        await ask(client, "POST", f"/threads/{uuid4()}/runs", body)

    async def _until(self, condition: str) -> None:
        async with asyncio.timeout(_PATIENCE), self.owner.connect() as connection:
            query = sa.text(f"SELECT {condition} FROM runs")  # noqa: S608 - both are ours
            while not (await connection.execute(query)).scalar_one():
                await connection.rollback()
                await asyncio.sleep(_LOOK_EVERY)


async def _at_once(doing: Iterable[Any]) -> None:
    """Do all of it, so many at a time."""
    left = iter(doing)

    async def some() -> None:
        for each in left:
            await each

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(some())


async def _timed(doing: Any) -> float:  # noqa: ANN401 - a coroutine
    begun = time.perf_counter()
    await doing
    return time.perf_counter() - begun


@asynccontextmanager
async def _desk(service: BenchService, owner_dsn: str, people: int) -> AsyncIterator[_Desk]:
    owner = create_engine(DatabaseSettings(dsn=owner_dsn))
    clients = [
        httpx.AsyncClient(
            base_url=service.origin, headers=headers, timeout=_PATIENCE, trust_env=False
        )
        for headers in await service.sign_up(people)
    ]
    try:
        yield _Desk(clients, owner)
    finally:
        await asyncio.gather(*(client.aclose() for client in clients))
        await owner.dispose()


@asynccontextmanager
async def _tickets(file: Path) -> AsyncIterator[str]:
    """The example server; its address."""
    port = free_port()
    module = ("-m", "app.tools.examples.tickets", "--file", str(file), "--http", str(port))
    process = await asyncio.create_subprocess_exec(
        sys.executable, *module, cwd=_ROOT, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with httpcore.AsyncConnectionPool(retries=8) as pool:
            await pool.request("GET", f"http://127.0.0.1:{port}/")
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def _settings(model_url: str, tickets_url: str, folder: Path) -> dict[str, str]:
    catalogue = folder / "mcp.json"
    entry = {"url": tickets_url, "stoa": {"scope": "shared", "approval": "always"}}
    catalogue.write_text(json.dumps({"mcpServers": {SERVER: entry}}), encoding="utf-8")
    return {
        FOLDER: str(folder),
        "STOA_OLLAMA_URL": model_url,
        "STOA_MODEL": MODEL,
        "STOA_OLLAMA_CAPACITY": "100",
        "STOA_MODEL_CONTEXT": "16384",
        "STOA_MCP_CONFIG": str(catalogue),
        "STOA_MCP_FOLDER": str(folder / "mcp"),
        "STOA_MCP_IDLE_SECONDS": str(_IDLE_SECONDS),
    }


def _assert_made_once(file: Path, calls: int) -> None:
    with closing(sqlite3.connect(file)) as db:
        (made,) = db.execute("SELECT count(*) FROM changes").fetchone()
    if made != calls:
        raise RuntimeError(f"{calls} calls were approved, {made} were made")


def _table(waited: Waited) -> Table:
    took = ", ".join(f"{seconds:.1f} s {what}" for what, seconds in waited.seconds.items())
    table = Table(title=f"{waited.runs} runs that wait for an approval", caption=took)
    headings = ("", *waited.footprints, "a run")
    for heading in headings:
        table.add_column(heading, justify="right" if heading else "left")
    before, waiting = (waited.footprints[when].counts for when in ("before", "waiting"))
    for what in before:
        numbers = [f"{each.counts[what]:,}" for each in waited.footprints.values()]
        table.add_row(what, *numbers, f"{(waiting[what] - before[what]) / waited.runs:.2f}")
    return table
