"""Queues for measuring the scheduler: many people with calls that wait, and with runs that wait.

A call's id begins with its user's number, so that whoever is given a seat is known without asking.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import sqlalchemy as sa

from tenancy.database.engine import create_engine
from tenancy.principal import ClaimedRun, UserId

if TYPE_CHECKING:
    from tenancy.database.engine import DatabaseSettings

MODEL = "paced:latest"
_MOST_USERS = 10_000
_USER_DIGITS = 8

_USER = "md5('user ' || u)::uuid"
_HELD_RUN = "md5('held ' || u)::uuid"
_CALL = f"(lpad(to_hex(u), {_USER_DIGITS}, '0') || substr(md5('call ' || n), 9))::uuid"
_RUN = "md5('run ' || n)::uuid"
_USERS = "FROM generate_series(1, :users) u"
_QUEUED = (
    "FROM generate_series(1, :queued) n,"
    " LATERAL (SELECT 1 + n % :users AS u, clock_timestamp() - n * interval '1 ms' AS at) whose"
)
_RUN_COLUMNS = (
    "user_id, run_id, thread_id, assistant_id, graph_id, request, priority, due_at, created_at,"
    " updated_at, state, fence, attempt, worker_id, claimed_at"
)

# Loaded in the order of references, though nobody looks at each row's parents meanwhile. One in ten
# has a plan, so that limits are looked up as they are in real life.
_FILL = (
    "SET LOCAL session_replication_role = replica",
    """
    INSERT INTO plans (plan, limits)
    VALUES ('default', '{"tokens_per_day": 1000000000}'), ('plus', '{"weight": 2}')
    """,
    f"INSERT INTO users (user_id, name) SELECT {_USER}, 'A person' {_USERS}",
    f"INSERT INTO user_limits (user_id, plan) SELECT {_USER}, 'plus' {_USERS} WHERE u % 10 = 0",
    f"""
    INSERT INTO model_users (user_id, model, vtime, estimate, eligible)
    SELECT {_USER}, '{MODEL}', random() * 2000000, 200 + random() * 1000, true {_USERS}
    """,
    # Hardly any call is the first of its user's in an hour.
    f"""
    INSERT INTO usage_hours (user_id, hour, model)
    SELECT {_USER}, date_trunc('hour', clock_timestamp(), 'UTC'), '{MODEL}' {_USERS}
    """,
    f"INSERT INTO run_queues (user_id, rank) SELECT {_USER}, 0 {_USERS}",
    f"""
    INSERT INTO threads (user_id, thread_id) SELECT {_USER}, {_HELD_RUN} {_USERS}
    """,
    f"""
    INSERT INTO runs ({_RUN_COLUMNS})
    SELECT {_USER}, {_HELD_RUN}, {_HELD_RUN}, {_HELD_RUN}, 'agent', '{{}}', 0, now(), now(),
           now(), 'running', 1, 1, CAST(:worker AS uuid), now() {_USERS}
    """,
    f"INSERT INTO threads (user_id, thread_id) SELECT {_USER}, {_RUN} {_QUEUED}",
    f"""
    INSERT INTO runs ({_RUN_COLUMNS})
    SELECT {_USER}, {_RUN}, {_RUN}, {_RUN}, 'agent', '{{}}', 0, at, at, at, 'pending', 0, 0,
           NULL, NULL {_QUEUED}
    """,
    f"""
    INSERT INTO model_calls (user_id, call_id, run_id, fence, worker_id, model, priority, asked_at)
    SELECT {_USER}, {_CALL}, {_HELD_RUN}, 1, CAST(:worker AS uuid), '{MODEL}', 0, at {_QUEUED}
    """,
)
_HELD_RUNS = sa.text(f"SELECT {_USER}, {_HELD_RUN} {_USERS} ORDER BY u")


def users_of(queued: int) -> int:
    """How many users share so many queued calls."""
    return min(_MOST_USERS, max(1, queued // 10))


async def fill(owner: DatabaseSettings, queued: int, worker: UUID) -> list[ClaimedRun]:
    """Queue so many calls, and as many runs. The pool is declared already.

    Returns each user's run that the worker holds and in whose name calls are made, in the order of
    the users' numbers. The owner must be a superuser.
    """
    given = {"users": users_of(queued), "queued": queued, "worker": worker}
    engine = create_engine(owner)
    try:
        async with engine.begin() as connection:
            for statement in _FILL:
                used = {name: value for name, value in given.items() if f":{name}" in statement}
                await connection.execute(sa.text(statement), used)
        async with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
            await connection.exec_driver_sql("VACUUM ANALYZE")
            await connection.exec_driver_sql("CHECKPOINT")
            rows = await connection.execute(_HELD_RUNS, {"users": given["users"]})
            return [ClaimedRun(UserId(user), run, fence=1) for user, run in rows]
    finally:
        await engine.dispose()


def user_number(call: UUID) -> int:
    """Whose call it is, by the user's place in the order."""
    return int(call.hex[:_USER_DIGITS], 16) - 1


def new_call(user: int) -> UUID:
    """An id for another call of a user's."""
    return UUID(f"{user + 1:0{_USER_DIGITS}x}{uuid4().hex[_USER_DIGITS:]}")
