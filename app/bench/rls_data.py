"""Rows for measuring row-level security: many users, each with a hundred threads.

Every hot table gets the same number of rows. In every tenth thread there is something to read:
ten events of its run, ten checkpoints with a value and a write each.
"""

# ruff: noqa: S608 - the parts of the statements are constants of this file

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import sqlalchemy as sa

from tenancy.database.engine import DatabaseSettings, create_engine
from tenancy.principal import UserId

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

THREADS_PER_USER = 100
READABLE = 10
"""Every tenth thread has events and checkpoints, this many of each."""

_USER = "md5('user ' || u)::uuid"
_THREAD = "md5('thread ' || u || ' ' || t)::uuid"
_RUN = "md5('run ' || u || ' ' || t)::uuid"
_THREADS = (
    f"FROM generate_series(1, :users) u, generate_series(1, {THREADS_PER_USER}) t,"
    " LATERAL (SELECT timestamptz '2026-01-01' + t * interval '1 hour' AS at) times"
)
_READABLE = (
    "FROM generate_series(1, :users) u,"
    f" generate_series({READABLE}, {THREADS_PER_USER}, {READABLE}) t,"
    f" generate_series(1, {READABLE}) n"
)
_VALUE = "convert_to(repeat('x', 200), 'UTF8')"
_CHECKPOINT_ID = "'1f0' || lpad(n::text, 10, '0')"

# Loaded in the order of references, though nobody looks at each row's parents meanwhile.
_FILL = (
    "SET LOCAL session_replication_role = replica",
    f"""
    INSERT INTO users (user_id, name)
    SELECT {_USER}, 'A person' FROM generate_series(1, :users) u
    """,
    f"""
    INSERT INTO threads (user_id, thread_id, title, created_at, updated_at)
    SELECT {_USER}, {_THREAD}, 'A conversation', at, at {_THREADS}
    """,
    f"""
    INSERT INTO runs (user_id, run_id, thread_id, assistant_id, graph_id, state, fence, attempt,
                      request, due_at, created_at, updated_at, ended_at)
    SELECT {_USER}, {_RUN}, {_THREAD}, {_RUN}, 'agent', 'success', 1, 1,
           CAST(:request AS jsonb), at, at, at, at {_THREADS}
    """,
    f"""
    INSERT INTO run_events (user_id, run_id, seq, event, data)
    SELECT {_USER}, {_RUN}, n, 'messages', {_VALUE} {_READABLE}
    """,
    f"""
    INSERT INTO checkpoints (user_id, thread_id, checkpoint_id, checkpoint, metadata)
    SELECT {_USER}, {_THREAD}, {_CHECKPOINT_ID},
           jsonb_build_object('v', 4, 'channel_versions', jsonb_build_object('messages', n::text)),
           '{{}}' {_READABLE}
    """,
    f"""
    INSERT INTO checkpoint_blobs (user_id, thread_id, channel, version, type, blob)
    SELECT {_USER}, {_THREAD}, 'messages', n::text, 'msgpack', {_VALUE} {_READABLE}
    """,
    f"""
    INSERT INTO checkpoint_writes
      (user_id, thread_id, checkpoint_id, task_id, idx, channel, type, blob)
    SELECT {_USER}, {_THREAD}, {_CHECKPOINT_ID}, 'task', 0, 'messages', 'msgpack', {_VALUE}
    {_READABLE}
    """,
)
_REQUEST = (
    '{"input": {"messages": ["hello"]}, "config": {}, "context": null,'
    ' "stream_modes": ["values"], "stream_subgraphs": false, "checkpoint_id": null}'
)
_IDS = sa.text(
    f"SELECT {_USER}, {_THREAD}, {_RUN} FROM (SELECT CAST(:u AS int) AS u, CAST(:t AS int) AS t)"
)


def users_of(rows: int) -> int:
    """How many users share so many rows."""
    return max(1, rows // THREADS_PER_USER)


async def fill(owner: DatabaseSettings, rows: int) -> None:
    """Fill a migrated database; the owner must be a superuser. Then let the planner know."""
    engine = create_engine(owner)
    try:
        async with engine.begin() as connection:
            for statement in _FILL:
                await _run(connection, statement, users_of(rows))
        async with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
            await connection.exec_driver_sql("VACUUM ANALYZE")
    finally:
        await engine.dispose()


async def _run(connection: AsyncConnection, statement: str, users: int) -> None:
    given = {"users": users, "request": _REQUEST}
    used = {name: value for name, value in given.items() if f":{name}" in statement}
    await connection.execute(sa.text(statement), used)


async def ids(connection: AsyncConnection, user: int, thread: int) -> tuple[UserId, UUID, UUID]:
    """The ids of a user, of one of their threads, and of its run, by their numbers."""
    row = (await connection.execute(_IDS, {"u": user, "t": thread})).one()
    return UserId(row[0]), row[1], row[2]
