"""What must hold in the database once everything has settled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from app.bench.chaos.promises import Violation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

OPEN_RUNS = "SELECT count(*) FROM runs WHERE state IN ('pending', 'running', 'waiting')"

_QUERIES = {
    "a run has not ended": """
        SELECT run_id, state::text FROM runs
        WHERE state NOT IN {terminal} OR ended_at IS NULL OR worker_id IS NOT NULL
    """,
    "a run did not end exactly once": """
        SELECT r.run_id, count(s.id) FROM runs r
        LEFT JOIN witness.steps s ON s.run_id = r.run_id AND s.after IN {terminal}
        GROUP BY r.run_id HAVING count(s.id) <> 1
    """,
    "a run failed though only what carries it did": """
        SELECT run_id, state::text, error_code FROM runs
        WHERE state IN ('error', 'timeout') AND error_code IS DISTINCT FROM 'worker_lost'
    """,
    "a run went on after its end": """
        SELECT run_id, before, after FROM witness.steps WHERE before IN {terminal}
    """,
    "a run's fence fell": """
        SELECT run_id, fence FROM (
          SELECT run_id, fence, lag(fence) OVER (PARTITION BY run_id ORDER BY id) AS earlier
          FROM witness.steps
        ) s WHERE fence < earlier
    """,
    "a cancel was accepted and the run ended otherwise": """
        SELECT run_id, state::text FROM runs
        WHERE cancel_requested_at IS NOT NULL AND state <> 'cancelled'
    """,
    "a log has a hole": """
        SELECT r.run_id, r.pruned_through, max(e.seq),
          count(*) FILTER (WHERE e.seq > r.pruned_through)
        FROM runs r JOIN run_events e USING (user_id, run_id)
        GROUP BY r.user_id, r.run_id
        HAVING count(*) FILTER (WHERE e.seq > r.pruned_through)
          <> greatest(max(e.seq) - r.pruned_through, 0)
    """,
    "a log opens attempts out of order": """
        SELECT run_id, attempt FROM (
          SELECT run_id, seq, said.attempt,
            lag(said.attempt) OVER (PARTITION BY user_id, run_id ORDER BY seq) AS earlier
          FROM run_events,
            LATERAL (SELECT (convert_from(data, 'UTF8')::jsonb ->> 'attempt')::int) said (attempt)
          WHERE event = 'metadata'
        ) e WHERE attempt <= earlier
    """,
    "an attempt is open": "SELECT run_id, fence FROM run_attempts WHERE ended_at IS NULL",
    "a thread had two attempts at once": """
        SELECT one.run_id, one.fence, two.run_id, two.fence
        FROM (SELECT a.*, r.thread_id FROM run_attempts a JOIN runs r USING (user_id, run_id)) one
        JOIN (SELECT a.*, r.thread_id FROM run_attempts a JOIN runs r USING (user_id, run_id)) two
          ON one.user_id = two.user_id AND one.thread_id = two.thread_id
            AND (one.run_id, one.fence) <> (two.run_id, two.fence)
        WHERE one.claimed_at < two.claimed_at AND two.claimed_at < one.ended_at
    """,
    "a message was accepted twice": """
        SELECT thread_id, count(*), request #>> '{input,messages,0,content}'
        FROM runs WHERE request #>> '{input,messages,0,content}' IS NOT NULL
        GROUP BY thread_id, request #>> '{input,messages,0,content}' HAVING count(*) > 1
    """,
}
RULES: Mapping[str, str] = {
    rule: query.replace("{terminal}", "('success', 'error', 'timeout', 'cancelled')")
    for rule, query in _QUERIES.items()
}
"""Each rule, and the query that finds what breaks it."""

AFTERWARDS: Mapping[str, str] = {
    "a lease is left": "SELECT worker_id, host, pid, lease_until FROM workers",
    "a connection is left": """
        SELECT usename, application_name, state FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND usename LIKE 'stoa%'
    """,
}
"""As above, once every process of the service has ended in order."""


async def broken_rules(owner: AsyncEngine, rules: Mapping[str, str]) -> list[Violation]:
    """Ask the database for everything that breaks a rule."""
    found = []
    async with owner.connect() as connection:
        for rule, query in rules.items():
            found += [Violation(rule, _said(row)) for row in await _rows(connection, query)]
    return found


async def stored_runs(owner: AsyncEngine) -> Sequence[sa.Row[Any]]:
    """Every run in the order of acceptance: thread, id, state, rolled back or not, its text."""
    query = """
        SELECT thread_id::text, run_id::text, state::text,
          coalesce(state = 'cancelled' AND cancel_action = 'rollback', false) AS rolled_back,
          request #>> '{input,messages,0,content}' AS text
        FROM runs ORDER BY created_at, run_id
    """
    async with owner.connect() as connection:
        return await _rows(connection, query)


async def open_runs(owner: AsyncEngine) -> int:
    """How many runs have something before them still."""
    async with owner.connect() as connection:
        return int((await connection.execute(sa.text(OPEN_RUNS))).scalar_one())


async def runs_by_outcome(owner: AsyncEngine) -> dict[str, int]:
    """How many runs there are in each state, and with which error."""
    query = """
        SELECT concat_ws(': ', state::text, error_code) AS outcome, count(*) AS number
        FROM runs GROUP BY state, error_code
    """
    async with owner.connect() as connection:
        return {row.outcome: row.number for row in await _rows(connection, query)}


async def holder_of(owner: AsyncEngine, run_id: str) -> int:
    """The process id of the worker that holds a run."""
    query = sa.text("SELECT pid FROM runs JOIN workers USING (worker_id) WHERE run_id = :run")
    async with owner.connect() as connection:
        return int((await connection.execute(query, {"run": run_id})).scalar_one())


async def released_at(owner: AsyncEngine, run_id: str) -> float:
    """When a run's first attempt ended, in seconds of Unix time."""
    query = sa.text(
        "SELECT extract(epoch FROM ended_at) FROM run_attempts"
        " WHERE run_id = :run ORDER BY fence LIMIT 1"
    )
    async with owner.connect() as connection:
        return float((await connection.execute(query, {"run": run_id})).scalar_one())


async def _rows(connection: AsyncConnection, query: str) -> Sequence[sa.Row[Any]]:
    return (await connection.exec_driver_sql(query)).all()


def _said(row: sa.Row[Any]) -> str:
    return ", ".join(str(each) for each in row)
