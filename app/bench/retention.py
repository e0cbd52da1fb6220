"""``stoa bench retention``: what dropping old logs costs, and whether their table grows.

A table of events is kept at one size: each cycle adds a quarter and has retention drop the oldest
one, in its own batches and with its pauses. Autovacuum looks every second and is given a few of
them after each cycle, as it would have hours. It is done once as Postgres vacuums by itself, and
once as the migrations say of the table; in the end that is written anew, to compare.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from app.bench.database import bench_database
from tenancy.database.due import LOGS
from tenancy.database.engine import create_engine
from tenancy.database.tenant import TenantDatabase
from tenancy.database.upkeep import UpkeepDatabase

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from sqlalchemy.ext.asyncio import AsyncEngine

LIVE_QUARTERS = 4
EVENTS_PER_RUN = 200
USERS = 10
AT_ONCE = 100
BATCH_ROWS = 1000
RETENTION_SECONDS = 30 * 24 * 3600.0
_MEGABYTE = 1_000_000
_DROP_LOG = "SELECT dropped, done FROM tenant.drop_log($1, $2, $3, $4)"
_OPTIONS = (
    "SELECT coalesce(array_to_string(reloptions, ', '), '') FROM pg_class"
    " WHERE oid = 'run_events'::regclass"
)
_AS_POSTGRES_DOES = (
    "ALTER TABLE run_events RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold,"
    " toast.autovacuum_vacuum_scale_factor, toast.autovacuum_vacuum_threshold)"
)
_HURRY = ("ALTER SYSTEM SET autovacuum_naptime = '1s'", "SELECT pg_reload_conf()")
_PEOPLE = (
    "INSERT INTO users (user_id) SELECT md5('user ' || u)::uuid FROM generate_series(1, :users) u",
    "INSERT INTO threads (user_id, thread_id) SELECT user_id, user_id FROM users",
)
_RUN = "md5('run ' || CAST(:quarter AS int) || ' ' || n)::uuid"
_QUARTER = (
    f"""
    INSERT INTO runs (user_id, run_id, thread_id, assistant_id, graph_id, state, fence, attempt,
                      request, due_at, created_at, updated_at, ended_at, pruned_at, priority)
    SELECT u.user_id, {_RUN}, u.user_id, u.user_id, 'agent', 'success', 1, 1,
           '{{}}', now(), now(), now(), now(), now(), CAST(:quarter AS int)
    FROM generate_series(1, :runs) n JOIN LATERAL (
      SELECT md5('user ' || (1 + n % :users))::uuid AS user_id
    ) u ON true
    """,  # noqa: S608 - a constant of this file
    """
    INSERT INTO run_events (user_id, run_id, seq, event, data)
    SELECT r.user_id, r.run_id, s, 'updates', convert_to(repeat('x', 100 + s), 'UTF8')
    FROM runs r, generate_series(1, :events) s WHERE r.priority = :quarter
    """,
)
_AGE = "UPDATE runs SET ended_at = now() - interval '31 days' WHERE priority = :quarter"
_SIZE = "SELECT pg_total_relation_size('run_events')"
_DEAD = "SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'run_events'"


@dataclass(frozen=True, slots=True)
class Cycle:
    """How it stood after a quarter was added and another one dropped."""

    rows: int
    seconds: float
    megabytes: float
    dead_rows: int


@dataclass(frozen=True, slots=True)
class Measured:
    """One way of vacuuming."""

    options: str
    full: float
    """Megabytes of the table when it was first filled."""
    cycles: tuple[Cycle, ...]
    anew: float
    """Megabytes of the same rows, written anew."""


async def bench_retention(
    owner_dsn: str, rows: int = 400_000, cycles: int = 8, rest_seconds: float = 6
) -> list[Measured]:
    """Measure both ways, each in a database of its own, print a table, return what was measured.

    Args:
        owner_dsn: a superuser's DSN; the databases and their roles are dropped again.
        rows: events that are kept, 50 to 300 bytes each.
        cycles: how often a quarter of them is replaced.
        rest_seconds: for how long autovacuum is left alone with the table after each.
    """
    found = [
        await _measure(owner_dsn, rows, cycles, rest_seconds, as_postgres_does=plain)
        for plain in (True, False)
    ]
    for each in found:
        Console(width=110).print(_report(each, rows))
    return found


async def _measure(
    owner_dsn: str, rows: int, cycles: int, rest_seconds: float, *, as_postgres_does: bool
) -> Measured:
    async with bench_database(owner_dsn) as database:
        engine = create_engine(database.owner)
        tenants, upkeep = TenantDatabase(database.service), UpkeepDatabase(database.maintenance)
        try:
            for statement in (*_HURRY, *([_AS_POSTGRES_DOES] if as_postgres_does else [])):
                await _execute(engine, statement)
            for statement in _PEOPLE:
                await _execute(engine, statement, users=USERS)
            for quarter in range(LIVE_QUARTERS):
                await _fill(engine, quarter, rows)
            full = await _megabytes(engine)
            turns = [
                cycle
                async for cycle in _turn_over(engine, upkeep, tenants, rows, cycles, rest_seconds)
            ]
            await _execute(engine, "VACUUM FULL run_events")
            options = str(await _scalar(engine, _OPTIONS))
            return Measured(options, full, tuple(turns), await _megabytes(engine))
        finally:
            await tenants.close()
            await upkeep.close()
            await engine.dispose()


async def _turn_over(
    engine: AsyncEngine,
    upkeep: UpkeepDatabase,
    tenants: TenantDatabase,
    rows: int,
    cycles: int,
    rest_seconds: float,
) -> AsyncIterator[Cycle]:
    for cycle in range(cycles):
        await _fill(engine, LIVE_QUARTERS + cycle, rows)
        await _execute(engine, _AGE, quarter=cycle)
        began = perf_counter()
        dropped = await _drop(upkeep, tenants)
        seconds = perf_counter() - began
        await asyncio.sleep(rest_seconds)
        dead = int(await _scalar(engine, _DEAD))
        yield Cycle(dropped, seconds, await _megabytes(engine), dead)


async def _drop(upkeep: UpkeepDatabase, tenants: TenantDatabase) -> int:
    """Drop what is due as a worker does: in batches, with a pause as long as each took."""
    dropped = 0
    while found := await upkeep.due(LOGS, AT_ONCE, RETENTION_SECONDS):
        for run in found:
            done = False
            while not done:
                began = perf_counter()
                ((rows, done),) = await tenants.call(
                    run, _DROP_LOG, run.row_id, RETENTION_SECONDS, BATCH_ROWS
                )
                dropped += rows
                await asyncio.sleep(perf_counter() - began)
    return dropped


async def _fill(engine: AsyncEngine, quarter: int, rows: int) -> None:
    runs = rows // LIVE_QUARTERS // EVENTS_PER_RUN
    given = {"quarter": quarter, "runs": runs, "users": USERS, "events": EVENTS_PER_RUN}
    async with engine.begin() as connection:
        # A run begins pending, says a trigger; these ended long ago.
        await connection.execute(sa.text("SET LOCAL session_replication_role = replica"))
        for statement in _QUARTER:
            await connection.execute(sa.text(statement), _named(statement, given))


async def _execute(engine: AsyncEngine, statement: str, **given: int) -> None:
    """Run one statement outside of any transaction, as VACUUM wants it."""
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        await connection.execute(sa.text(statement), _named(statement, given))


def _named(statement: str, given: Mapping[str, int]) -> dict[str, int]:
    return {name: value for name, value in given.items() if f":{name}" in statement}


async def _scalar(engine: AsyncEngine, query: str) -> float | str:
    async with engine.connect() as connection:
        return (await connection.execute(sa.text(query))).scalar_one()  # type: ignore[no-any-return]


async def _megabytes(engine: AsyncEngine) -> float:
    return float(await _scalar(engine, _SIZE)) / _MEGABYTE


def _report(measured: Measured, rows: int) -> Table:
    table = Table(
        title=f"{rows:,} events kept; {measured.options or 'vacuumed as Postgres does'}",
        caption=f"Filled once: {measured.full:.0f} MB. The same rows written anew in the end:"
        f" {measured.anew:.0f} MB.",
    )
    for name in ("cycle", "dropped", "seconds", "rows/s", "MB", "dead rows"):
        table.add_column(name, justify="right")
    for number, each in enumerate(measured.cycles, 1):
        table.add_row(
            str(number),
            f"{each.rows:,}",
            f"{each.seconds:.1f}",
            f"{each.rows / each.seconds:,.0f}",
            f"{each.megabytes:.0f}",
            f"{each.dead_rows:,}",
        )
    return table
