"""``stoa bench erasure``: what others notice while somebody with very many rows is erased.

Other people do the same the whole time: they start runs and list their threads, each as soon as the
last was answered. That is measured for a while before, during the erasure, and for a while after.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import secrets
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from uuid import UUID

import orjson
import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from app.bench.load import percentile
from app.bench.service import BenchService, json_headers, lines, open_processes, stream_run
from tenancy.database.engine import DatabaseSettings, create_engine

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from sqlalchemy.ext.asyncio import AsyncEngine

GOAL = 1.5
"""How many times as long the slowest of a hundred requests may take during an erasure."""
OTHERS = 4
ROWS_OF_EACH = 5000
WARM_UP_SECONDS = 3.0
_LOOK_EVERY = 0.2
_SECONDS = 3600
_RUN = orjson.dumps(
    {
        "assistant_id": "three_steps",
        "input": {"steps": [], "text": "word " * 400},
        "stream_mode": ["values"],
        "if_not_exists": "create",
    }
)
_SEARCH = orjson.dumps({"limit": 10})
_FILL = (
    # Nothing here needs looking up: the rows are made for each other.
    "SET LOCAL session_replication_role = replica",
    """
    INSERT INTO threads (user_id, thread_id)
    SELECT :user, gen_random_uuid() FROM generate_series(1, greatest(1, :rows / 5000))
    """,
    """
    INSERT INTO runs (user_id, run_id, thread_id, assistant_id, graph_id, request, state, due_at,
                      created_at, updated_at, ended_at, fence)
    SELECT :user, gen_random_uuid(), thread_id, gen_random_uuid(), 'three_steps', '{}', 'success',
      now(), now(), now(), now(), 1
    FROM threads, generate_series(1, 10) WHERE user_id = :user
    """,
    """
    INSERT INTO run_events (user_id, run_id, seq, event, data)
    SELECT :user, run_id, n, 'values', convert_to(repeat('word ', 30), 'UTF8')
    FROM runs, generate_series(1, 300) n WHERE user_id = :user
    """,
    """
    INSERT INTO checkpoint_blobs (user_id, thread_id, channel, version, type, blob)
    SELECT :user, thread_id, 'steps', n, 'msgpack', convert_to(repeat('word ', 30), 'UTF8')
    FROM threads, generate_series(1, 1500) n WHERE user_id = :user
    """,
    """
    INSERT INTO checkpoint_writes (user_id, thread_id, checkpoint_id, task_id, idx, channel, blob)
    SELECT :user, thread_id, n, 't', 0, 'steps', convert_to(repeat('word ', 10), 'UTF8')
    FROM threads, generate_series(1, 490) n WHERE user_id = :user
    """,
)
"""About as many rows as asked for: 5,001 for each thread."""


@dataclass(slots=True)
class Erased:
    """What was measured. Seconds, by what was asked for."""

    rows: int = 0
    seconds: float = 0.0
    without: dict[str, list[float]] = field(default_factory=dict)
    during: dict[str, list[float]] = field(default_factory=dict)


async def bench_erasure(
    dsns: Mapping[str, str],
    owner_dsn: str,
    folder: Path,
    *,
    rows: int,
    seconds: float,
    clients: int,
) -> Erased:
    """Measure, print a table and return what was measured.

    Args:
        dsns: ``STOA_…_DATABASE_URL`` settings of a migrated, empty database.
        owner_dsn: a superuser's DSN of that database.
        folder: where tombstones are kept.
        rows: how many rows the person has, about.
        seconds: how long is measured without an erasure, before it and after it.
        clients: how many of the others do something at once.
    """
    key = base64.b64encode(secrets.token_bytes(32)).decode()
    settings = {
        "STOA_SIGNING_KEYS": f"bench:{key}",
        "STOA_TOMBSTONE_FOLDER": str(folder / "tombstones"),
    }
    engine = create_engine(DatabaseSettings(dsn=owner_dsn, statement_timeout=_SECONDS))
    try:
        async with open_processes(dsns, settings) as service:
            leaver, *others = await service.sign_up(1 + OTHERS)
            await _fill(engine, rows)
            erased = await _measure(service, leaver, others, seconds, clients)
    finally:
        await engine.dispose()
    Console().print(_table(erased, clients))
    return erased


async def _fill(engine: AsyncEngine, rows: int) -> None:
    async with engine.begin() as connection:
        people = await connection.execute(
            sa.text("SELECT user_id, identity LIKE '%person-0' FROM identities")
        )
        for user_id, is_leaver in people.all():
            user = sa.bindparam("user", UUID(str(user_id)), type_=sa.Uuid)
            count = sa.bindparam("rows", rows if is_leaver else ROWS_OF_EACH, type_=sa.Integer)
            for statement in _FILL:
                bound = [each for each in (user, count) if f":{each.key}" in statement]
                await connection.execute(sa.text(statement).bindparams(*bound))
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        await connection.execute(sa.text("VACUUM ANALYZE"))


async def _measure(
    service: BenchService,
    leaver: dict[str, str],
    others: list[dict[str, str]],
    seconds: float,
    clients: int,
) -> Erased:
    erased = Erased()
    people = itertools.cycle(others)
    wait = asyncio.sleep

    async def busy(what: Callable[[], Awaitable[object]]) -> dict[str, list[float]]:
        return await _busy(service, people, clients, what)

    await busy(lambda: wait(min(seconds, WARM_UP_SECONDS)))
    before = await busy(lambda: wait(seconds))
    erased.during = await busy(lambda: _leave(service, leaver, erased))
    after = await busy(lambda: wait(seconds))
    erased.without = {kind: before[kind] + after[kind] for kind in before}
    return erased


async def _busy(
    service: BenchService,
    people: itertools.cycle[dict[str, str]],
    clients: int,
    what: Callable[[], Awaitable[object]],
) -> dict[str, list[float]]:
    """What the others' requests take until ``what`` is done."""
    taken: dict[str, list[float]] = {"a run": [], "a list of threads": []}
    is_over = asyncio.Event()

    async def use() -> None:
        while not is_over.is_set():
            headers = next(people)
            run = await stream_run(service.pool, service.origin, headers, _RUN)
            taken["a run"].append(run.completion)
            began = time.perf_counter()
            await _ask(service, "POST", "/threads/search", headers, _SEARCH)
            taken["a list of threads"].append(time.perf_counter() - began)

    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(use())
        await what()
        is_over.set()
    return taken


async def _leave(service: BenchService, leaver: dict[str, str], erased: Erased) -> None:
    """Ask to be erased, and wait for the end."""
    began = time.perf_counter()
    asked = await _ask(service, "DELETE", "/me", leaver)
    while True:
        erasure = await _ask(service, "GET", f"/erasures/{asked['erasure_id']}", leaver)
        if erasure["state"] == "done":
            break
        await asyncio.sleep(_LOOK_EVERY)
    erased.seconds = time.perf_counter() - began
    erased.rows = sum(erasure["deleted"].values())
    if sum(erasure["remaining"].values()):
        raise RuntimeError("rows of the person are left")


async def _ask(
    service: BenchService,
    method: str,
    path: str,
    headers: Mapping[str, str],
    content: bytes = b"",
) -> Any:  # noqa: ANN401 - a document
    given = {**headers, **(json_headers(content) if content else {})}
    response = await service.pool.request(
        method, f"{service.origin}{path}", headers=lines(given), content=content
    )
    if response.status not in (HTTPStatus.OK, HTTPStatus.ACCEPTED):
        raise RuntimeError(f"{method} {path} answers {response.status}")
    return orjson.loads(response.content)


def _table(erased: Erased, clients: int) -> Table:
    rate = erased.rows / erased.seconds
    table = Table(
        title=f"{erased.rows:,} rows are erased in {erased.seconds:.0f} s ({rate:,.0f} a second),"
        f" while {clients} others do something; ms"
    )
    for heading in ("", "", "p50", "p99", "times", "goal"):
        table.add_column(heading, justify="right" if heading else "left")
    for kind, without in erased.without.items():
        during = erased.during[kind]
        figures = [percentile(each, p) for each in (without, during) for p in (50, 99)]
        p50, p99, p50_during, p99_during = (f"{figure * 1000:.1f}" for figure in figures)
        table.add_row(kind, f"without ({len(without):,})", p50, p99)
        times = f"{figures[3] / figures[1]:.2f}"
        table.add_row("", f"during ({len(during):,})", p50_during, p99_during, times, f"≤ {GOAL}")
    return table
