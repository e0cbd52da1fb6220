"""``stoa bench export``: what a web process holds while it hands out everything about a person.

The person has rows of every size that there may be: events by the hundred thousand, states, some
as large as a row may be, and a conversation as large as one may become. What comes out is compared
with the database.
"""

from __future__ import annotations

import hashlib
import os
import time
import zipfile
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import httpcore
import orjson
import psutil
import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from app.bench.service import BenchService, json_headers, lines, open_processes
from tenancy.database.engine import DatabaseSettings, create_engine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

GOAL_MEGABYTES = 200
"""Of memory that an export adds to what the process holds already."""
MEGABYTE = 1_000_000
LARGEST_ROW = 8 * MEGABYTE
LARGEST_CONVERSATION = 14 * MEGABYTE
_MESSAGE = 900_000
_AT_ONCE = 7
_SECONDS = 3600

_RUN = """
    INSERT INTO runs (
      user_id, run_id, thread_id, assistant_id, graph_id, request, created_at, updated_at, due_at
    )
    VALUES (:user, :run, :thread, :run, 'agent', '{}', now(), now(), now() + interval '1 day')
"""
_EVENTS = """
    INSERT INTO run_events (user_id, run_id, seq, event, data)
    SELECT :user, :run, n, 'messages/partial', convert_to(json_build_object(
      'id', gen_random_uuid(), 'text', (
        SELECT string_agg(md5(random()::text || i || n), ' ') FROM generate_series(1, 30) i
      ))::text, 'UTF8')
    FROM generate_series(1, :rows) n
"""
_EVENT_BYTES = 1250
_STATES = """
    INSERT INTO checkpoint_blobs (user_id, thread_id, channel, version, type, blob)
    SELECT :user, :thread, 'c', :kind || n, 'msgpack', (
      SELECT string_agg(uuid_send(gen_random_uuid()), '') FROM generate_series(1, :size / 16)
      WHERE n IS NOT NULL
    )
    FROM generate_series(1, :rows) n
"""
_STATE_BYTES = 48_000
_COUNT = "SELECT count(*) FROM {} WHERE user_id = :user"


@dataclass(frozen=True, slots=True)
class Exported:
    """What was measured. Memory in bytes."""

    rows: int
    content: int
    """Bytes of all members."""
    archive: int
    seconds: float
    cpu_seconds: float
    """Of the web process."""
    before: int
    peak: int


async def bench_export(
    dsns: Mapping[str, str], owner_dsn: str, folder: Path, *, megabytes: int
) -> Exported:
    """Measure, print a table and return what was measured.

    Args:
        dsns: ``STOA_…_DATABASE_URL`` settings of a migrated, empty database.
        owner_dsn: a superuser's DSN of that database.
        folder: where the archive is kept while it is compared.
        megabytes: how much the person has, at least, as it is written in the archive.

    Raises:
        RuntimeError: the archive does not hold what the database does.
    """
    engine = create_engine(DatabaseSettings(dsn=owner_dsn, statement_timeout=_SECONDS))
    settings = {"STOA_MCP_FOLDER": str(folder / "mcp")}
    try:
        async with open_processes(dsns, settings) as service:
            (headers,) = await service.sign_up(1)
            thread = await _talk(service, headers, min(LARGEST_CONVERSATION, megabytes * 14_000))
            user = await _fill(engine, thread, megabytes * MEGABYTE)
            # Once before it counts: a process grows with its first work, whatever that is.
            await _send(service, "GET", f"/threads/{thread}/export", headers)
            before = _reset_peak(service.web_pid)
            began, worked = time.perf_counter(), _worked(service.web_pid)
            archive = await _download(service, headers, folder / "export.zip")
            seconds = time.perf_counter() - began
            cpu_seconds = _worked(service.web_pid) - worked
            peak = _memory(service.web_pid, "VmHWM")
        rows, content = await _compare(engine, user, archive)
    finally:
        await engine.dispose()
    size = archive.stat().st_size
    measured = Exported(rows, content, size, seconds, cpu_seconds, before, peak)
    Console().print(_table(measured))
    return measured


async def _talk(service: BenchService, headers: Mapping[str, str], size: int) -> UUID:
    """A conversation with messages of this many bytes together."""
    thread = uuid4()
    await _send(service, "POST", "/threads", headers, {"thread_id": str(thread)})
    texts = [os.urandom(_MESSAGE // 2).hex() for _ in range(max(1, size // _MESSAGE))]
    for start in range(0, len(texts), _AT_ONCE):
        said = [{"role": "user", "content": text} for text in texts[start : start + _AT_ONCE]]
        body = {"values": {"messages": said}}
        await _send(service, "POST", f"/threads/{thread}/state", headers, body)
    return thread


async def _fill(engine: AsyncEngine, thread: UUID, size: int) -> UUID:
    """Rows of the only person that there is. Half of it events; of states, some are the largest."""
    async with engine.begin() as connection:
        user = (await connection.execute(sa.text("SELECT user_id FROM users"))).scalar_one()
        run = uuid4()
        about = {"user": user, "thread": thread, "run": run}
        await _run(connection, _RUN, about)
        await _run(connection, _EVENTS, {**about, "rows": size // 2 // _EVENT_BYTES})
        largest = max(1, size // 10 // LARGEST_ROW)
        each = min(LARGEST_ROW, size // 10)
        await _run(connection, _STATES, {**about, "kind": "l", "rows": largest, "size": each})
        rest = size * 3 // 10 // _STATE_BYTES
        await _run(connection, _STATES, {**about, "kind": "s", "rows": rest, "size": _STATE_BYTES})
    return UUID(str(user))


async def _run(connection: AsyncConnection, sql: str, params: Mapping[str, object]) -> None:
    statement = sa.text(sql)
    named = {name: value for name, value in params.items() if f":{name}" in sql}
    types = {name: sa.Uuid for name, value in named.items() if isinstance(value, UUID)}
    types |= {name: sa.Integer for name, value in named.items() if isinstance(value, int)}  # type: ignore[misc]
    bound = [sa.bindparam(name, type_=kind) for name, kind in types.items()]
    await connection.execute(statement.bindparams(*bound), named)


async def _send(
    service: BenchService,
    method: str,
    path: str,
    headers: Mapping[str, str],
    body: object = None,
) -> None:
    content = b"" if body is None else orjson.dumps(body)
    given = {**headers, **(json_headers(content) if content else {})}
    response = await service.pool.request(
        method, f"{service.origin}{path}", headers=lines(given), content=content
    )
    if response.status != HTTPStatus.OK:
        raise RuntimeError(f"{method} {path} answers {response.status}")


async def _download(service: BenchService, headers: Mapping[str, str], file: Path) -> Path:
    url = f"{service.origin}/me/export"
    with file.open("wb") as archive:
        async with service.pool.stream("GET", url, headers=lines(headers)) as response:
            if response.status != HTTPStatus.OK:
                raise httpcore.RemoteProtocolError(f"{url} answers {response.status}")
            async for piece in response.aiter_stream():
                archive.write(piece)
    return file


async def _compare(engine: AsyncEngine, user: UUID, archive: Path) -> tuple[int, int]:
    """See that each member is what the manifest says, and each table has all its rows."""
    with zipfile.ZipFile(archive) as opened:
        members = orjson.loads(opened.read("manifest.json"))["members"]
        for member in members:
            with opened.open(member["name"]) as content:
                digest = hashlib.file_digest(content, "sha256")  # type: ignore[arg-type]
            if digest.hexdigest() != member["sha256"]:
                raise RuntimeError(f"{member['name']} is not what the manifest says")
    tables = {member["table"]: member["rows"] for member in members if "table" in member}
    async with engine.connect() as connection:
        for table in set(tables) - {"audit"}:
            count = sa.text(_COUNT.format(table)).bindparams(sa.bindparam("user", type_=sa.Uuid))
            there = (await connection.execute(count, {"user": user})).scalar_one()
            if there != tables[table]:
                raise RuntimeError(f"{table} has {there} rows, and {tables[table]} were exported")
    return sum(tables.values()), sum(member["bytes"] for member in members)


def _reset_peak(pid: int) -> int:
    """What a process holds; from here on its peak counts anew."""
    Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")
    return _memory(pid, "VmRSS")


def _worked(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def _memory(pid: int, what: str) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.partition(f"{what}:")[2].split()[0]) * 1024


def _table(measured: Exported) -> Table:
    table = Table(title="Everything about one person, through one web process")
    for heading in ("", "measured", "goal"):
        table.add_column(heading, justify="left" if not heading else "right")
    rate = measured.content / MEGABYTE / measured.seconds
    added = measured.peak - measured.before
    for what, value, goal in (
        ("rows", f"{measured.rows:,}", ""),
        ("MB of content", f"{measured.content / MEGABYTE:,.0f}", ""),
        ("MB of archive", f"{measured.archive / MEGABYTE:,.0f}", ""),
        ("seconds", f"{measured.seconds:.1f}", ""),
        ("CPU seconds of the web process", f"{measured.cpu_seconds:.1f}", ""),
        ("MB of content a second", f"{rate:.1f}", ""),
        ("memory before, MB", f"{measured.before / MEGABYTE:.0f}", ""),
        ("memory added at its peak, MB", f"{added / MEGABYTE:.0f}", f"≤ {GOAL_MEGABYTES}"),
    ):
        table.add_row(what, value, goal)
    return table
