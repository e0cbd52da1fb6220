"""What a service holds at a moment: processes, connections, seats, tasks, timers, memory."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson
import psutil
import sqlalchemy as sa

from app.bench.observed import socket_of

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy.ext.asyncio import AsyncEngine

_COUNTS = {
    "runs that a worker holds": "SELECT count(*) FROM runs WHERE state = 'running'",
    "runs that wait": "SELECT count(*) FROM runs WHERE state = 'waiting'",
    "model calls, seats included": "SELECT count(*) FROM model_calls",
    "connections to PostgreSQL": "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()",
    "of these, in a transaction": "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'",
    "database, KB": "SELECT pg_database_size(current_database()) / 1024",
}


@dataclass(frozen=True, slots=True)
class Footprint:
    """Numbers by what they are of."""

    counts: dict[str, int]

    @classmethod
    async def of(cls, pids: dict[str, int], folder: Path, owner: AsyncEngine) -> Footprint:
        """Take it now.

        Args:
            pids: observed processes, by their names.
            folder: where they answer.
            owner: of the database, without any other user.
        """
        counts: dict[str, int] = {}
        for name, pid in pids.items():
            process = psutil.Process(pid)
            counts[f"{name}: processes"] = 1 + len(process.children(recursive=True))
            for what, number in (await _held(folder, pid)).items():
                counts[f"{name}: {what}"] = number
            counts[f"{name}: threads"] = process.num_threads()
            counts[f"{name}: open files"] = process.num_fds()
            counts[f"{name}: memory, KB"] = process.memory_info().rss // 1024
        async with owner.connect() as connection:
            for what, query in _COUNTS.items():
                counts[what] = int((await connection.execute(sa.text(query))).scalar_one())
        return cls(counts)


async def _held(folder: Path, pid: int) -> dict[str, int]:
    reader, writer = await asyncio.open_unix_connection(socket_of(folder, pid))
    try:
        answer: dict[str, int] = orjson.loads(await reader.readline())
        return answer
    finally:
        writer.close()
