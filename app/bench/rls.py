"""``stoa bench rls``: what the policies cost the hot queries.

The same statements on the same rows: once under the service role, where the policies add the
user, once under a role that bypasses them, with the user in an explicit filter. The two
alternate query by query, each in a transaction that is bound the same way; only the query
itself is timed.
"""

from __future__ import annotations

import random
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from statistics import quantiles
from time import perf_counter
from typing import TYPE_CHECKING, Any, Self, cast
from uuid import UUID

import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from app.bench.database import bench_database
from app.bench.rls_data import READABLE, THREADS_PER_USER, fill, ids, users_of
from app.runs.events import read_log
from app.runs.runs import get_run
from app.runs.threads import ThreadFilter, get_thread, search_threads
from tenancy.checkpoints.pool import CheckpointPool
from tenancy.checkpoints.saver import TenantReader
from tenancy.database.engine import DatabaseSettings, create_engine
from tenancy.database.tenant import TenantDatabase, TenantRead

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection
    from sqlalchemy.sql.base import Executable

    from tenancy.principal import UserId

GOAL = 1.1
SAMPLES = 2000
WARM_UP = 200

_HEAD = "WHERE thread_id = %s AND checkpoint_ns = '' ORDER BY checkpoint_id DESC LIMIT 1"
_HEAD_OF_USER = f"WHERE user_id = %s AND {_HEAD.removeprefix('WHERE ')}"
_SELECT_OF_USER = TenantReader.SELECT_SQL.replace(
    "bl.thread_id =", "bl.user_id = checkpoints.user_id and bl.thread_id ="
).replace("cw.thread_id =", "cw.user_id = checkpoints.user_id and cw.thread_id =")


@dataclass(frozen=True, slots=True)
class Target:
    """Whose rows a sample reads."""

    user_id: UserId
    thread_id: UUID
    run_id: UUID


@dataclass(slots=True)
class Comparison:
    """One query's times in milliseconds, with and without policies."""

    query: str
    filtered: list[float] = field(default_factory=list)
    policed: list[float] = field(default_factory=list)


def percentile(values: list[float], percent: int) -> float:
    """A percentile of measured values."""
    return quantiles(values, n=100)[percent - 1]


async def bench_rls(owner_dsn: str, rows: int = 1_000_000) -> list[Comparison]:
    """Measure in a database of its own, print a table and return what was measured.

    Args:
        owner_dsn: a superuser's DSN; the database and its roles are dropped again.
        rows: rows in each hot table, a hundred per user.
    """
    console = Console()
    async with bench_database(owner_dsn) as database:
        owner, service = database.owner, database.service
        with console.status(f"writing {rows:,} rows into each table"):
            await fill(owner, rows)
        targets = await _targets(owner, rows)
        bypassing, policed = _Side(owner, policies=False), _Side(service, policies=True)
        async with bypassing, policed:
            measured = [await _compare(name, bypassing, policed, targets) for name in QUERIES]
    console.print(_table(measured, rows))
    return measured


class _TimedRead(TenantRead):
    """Times its queries, and nothing of how they are put together.

    Where no policy does, it adds the filter first.
    """

    def __init__(self, connection: AsyncConnection, user_id: UserId, *, policies: bool) -> None:
        super().__init__(connection, user_id)
        self._policies = policies
        self.took = 0.0

    async def first(
        self, statement: Executable, params: Mapping[str, Any] | None = None
    ) -> sa.Row[Any] | None:
        """The first row of a query, or None."""
        return next(iter(await self.all(statement, params)), None)

    async def all(
        self,
        statement: Executable,
        params: Mapping[str, Any] | None = None,  # noqa: ARG002 - none of these queries has any
    ) -> Sequence[sa.Row[Any]]:
        """Every row of a query."""
        sql, arguments = self._compiled(cast("sa.Select[Any]", statement))
        began = perf_counter()
        rows = (await self._connection.exec_driver_sql(sql, arguments)).all()
        self.took = _since(began)
        return rows

    def _compiled(self, statement: sa.Select[Any]) -> tuple[str, tuple[Any, ...]]:
        if not self._policies:
            (table,) = statement.get_final_froms()
            statement = statement.where(table.c.user_id == self.user_id)
        compiled = statement.compile(
            dialect=self._connection.dialect, compile_kwargs={"render_postcompile": True}
        )
        values = compiled.construct_params()
        return str(compiled), tuple(values[name] for name in compiled.positiontup or ())


class _Side:
    """One role's connections, one of each kind."""

    def __init__(self, settings: DatabaseSettings, *, policies: bool) -> None:
        self.policies = policies
        self.database = TenantDatabase(replace(settings, pool_size=1))
        self.pool = CheckpointPool(replace(settings, pool_size=1))

    async def __aenter__(self) -> Self:
        await self.pool.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.pool.close()
        await self.database.close()

    @asynccontextmanager
    async def reading(self, target: Target) -> AsyncIterator[_TimedRead]:
        """A bound transaction."""
        async with self.database.reading(target) as tx:
            yield _TimedRead(tx._connection, tx.user_id, policies=self.policies)  # noqa: SLF001


def _since(began: float) -> float:
    return (perf_counter() - began) * 1000


async def _list_threads(side: _Side, target: Target) -> float:
    async with side.reading(target) as tx:
        await search_threads(tx, ThreadFilter(), limit=20)
        return tx.took


async def _get_thread(side: _Side, target: Target) -> float:
    async with side.reading(target) as tx:
        await get_thread(tx, target.thread_id)
        return tx.took


async def _get_run(side: _Side, target: Target) -> float:
    async with side.reading(target) as tx:
        await get_run(tx, target.thread_id, target.run_id)
        return tx.took


async def _read_log(side: _Side, target: Target) -> float:
    began = perf_counter()
    await read_log(side.database, target, target.run_id, 0)
    return _since(began)


async def _head_checkpoint(side: _Side, target: Target) -> float:
    sql, args = TenantReader.SELECT_SQL + _HEAD, [str(target.thread_id)]
    if not side.policies:
        sql, args = _SELECT_OF_USER + _HEAD_OF_USER, [str(target.user_id), *args]
    async with side.pool.transaction(target.user_id) as cursor:
        began = perf_counter()
        await cursor.execute(sql, args, binary=True)
        await cursor.fetchone()
        return _since(began)


QUERIES: dict[str, Callable[[_Side, Target], Awaitable[float]]] = {
    "a page of threads, with status": _list_threads,
    "one thread, with status": _get_thread,
    "one run": _get_run,
    "a run's log": _read_log,
    "a thread's head checkpoint": _head_checkpoint,
}


async def _compare(
    name: str, bypassing: _Side, policed: _Side, targets: list[Target]
) -> Comparison:
    measured = Comparison(name)
    for n, target in enumerate(targets):
        # Whoever comes second finds the rows in the cache, so they take turns at it.
        sides = (bypassing, policed) if n % 2 else (policed, bypassing)
        for side in sides:
            took = await QUERIES[name](side, target)
            if n >= WARM_UP:
                (measured.policed if side.policies else measured.filtered).append(took)
    return measured


async def _targets(owner: DatabaseSettings, rows: int) -> list[Target]:
    chosen = random.Random(1)  # noqa: S311 - the same rows each time
    engine = create_engine(owner)
    try:
        async with engine.connect() as connection:
            return [
                Target(
                    *await ids(
                        connection,
                        chosen.randint(1, users_of(rows)),
                        READABLE * chosen.randint(1, THREADS_PER_USER // READABLE),
                    )
                )
                for _ in range(WARM_UP + SAMPLES)
            ]
    finally:
        await engine.dispose()


def _table(measured: list[Comparison], rows: int) -> Table:
    table = Table(title=f"{rows:,} rows of {users_of(rows):,} users in each table; milliseconds")
    for heading in ("p50 / p99", "filter", "policies", "ratio", "goal"):
        table.add_column(heading, justify="left" if "/" in heading else "right")
    for each in measured:
        filtered = [percentile(each.filtered, percent) for percent in (50, 99)]
        policed = [percentile(each.policed, percent) for percent in (50, 99)]
        table.add_row(
            each.query,
            " / ".join(f"{value:.3f}" for value in filtered),
            " / ".join(f"{value:.3f}" for value in policed),
            " / ".join(f"{p / f:.2f}" for f, p in zip(filtered, policed, strict=True)),
            f"≤ {GOAL}",
        )
    return table
