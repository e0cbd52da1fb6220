"""Under the policies, the hot queries still find a user's rows by an index."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import asyncpg
import pytest
import sqlalchemy as sa
from sqlalchemy.sql.base import Executable

from app.bench.rls_data import READABLE, fill, ids
from app.runs.approvals import ApprovalFilter, count_approvals, find_approvals, list_approvals
from app.runs.runs import get_run, list_runs
from app.runs.threads import ThreadFilter, count_threads, get_thread, search_threads
from tenancy.checkpoints.pool import CheckpointPool
from tenancy.checkpoints.saver import TenantReader
from tenancy.database.engine import create_engine
from tenancy.database.tenant import TenantDatabase, TenantRead
from tenancy.principal import Principal
from tests.support.tenancy import TestDatabase

ROWS = 10_000
OF_EVERYBODY = """
    INSERT INTO store (user_id, prefix, key, value)
      SELECT user_id, user_id || '.memories', gen_random_uuid(), '{"content": "likes trams"}'
      FROM users, generate_series(1, 10);
    INSERT INTO connections (user_id, server)
      SELECT user_id, server FROM users, unnest(ARRAY['notes', 'mail', 'files']) server;
    INSERT INTO effects (user_id, thread_id, message_id, tool_call_id, run_id, fence, server, tool,
                         key, arguments_sha256, state)
      SELECT user_id, thread_id, 'm', 'c', gen_random_uuid(), 1, 'notes', 'write',
             gen_random_uuid(), '', 'started'
      FROM threads;
    ANALYZE store, connections, effects
"""

WHAT_EVERYBODY_WAS_ASKED = """
    INSERT INTO approvals (
      user_id, run_id, thread_id, fence, interrupt_id, kind, message_id, tool_call_id, tool,
      arguments, arguments_sha256, asked, decisions, subject, policy_version, state, decision,
      for_thread, expires_at, decided_at
    )
      SELECT user_id, run_id, thread_id, 1, 'i', 'call', 'm', n, 'fetch', '{}', '', '{}',
             '{approve}', 'example.org', 'p', CASE WHEN n > 1 THEN 'decided' ELSE 'open' END,
             CASE WHEN n > 1 THEN 'approve' END, n > 1, now() + n * interval '1 day',
             CASE WHEN n > 1 THEN now() END
      FROM (SELECT * FROM runs LIMIT 10000) AS runs, generate_series(1, 10) n;
    ANALYZE approvals
"""


class ExplainingRead(TenantRead):
    """Keeps the plan of every query beside answering it."""

    def __init__(self, tx: TenantRead) -> None:
        super().__init__(tx._connection, tx.user_id)
        self.plans: list[str] = []

    async def all(
        self, statement: Executable, params: Mapping[str, Any] | None = None
    ) -> Sequence[sa.Row[Any]]:
        await self._explain(statement)
        return await super().all(statement, params)

    async def first(
        self, statement: Executable, params: Mapping[str, Any] | None = None
    ) -> sa.Row[Any] | None:
        await self._explain(statement)
        return await super().first(statement, params)

    async def scalar(self, statement: Executable, params: Mapping[str, Any] | None = None) -> Any:
        await self._explain(statement)
        return await super().scalar(statement, params)

    async def _explain(self, statement: Any) -> None:
        compiled = statement.compile(
            dialect=self._connection.dialect, compile_kwargs={"render_postcompile": True}
        )
        values = compiled.construct_params()
        arguments = tuple(values[name] for name in compiled.positiontup or ())
        rows = await self._connection.exec_driver_sql(f"EXPLAIN {compiled}", arguments)
        self.plans.append("\n".join(row[0] for row in rows))


@pytest.fixture
async def full(database: TestDatabase, tenants: TenantDatabase) -> tuple[Principal, Any, Any]:
    """A person in the middle of many, one of their threads, and its run."""
    await fill(database.settings("owner"), ROWS)
    engine = create_engine(database.settings("owner"))
    try:
        async with engine.connect() as connection:
            user_id, thread_id, run_id = await ids(connection, 50, READABLE)
    finally:
        await engine.dispose()
    return Principal(user_id, None), thread_id, run_id  # type: ignore[arg-type]


def assert_by_index_of_the_user(plan: str) -> None:
    """Every scan is of an index whose condition begins with the user, found once per query."""
    scans = [line for line in plan.splitlines() if "Scan" in line and "Function Scan" not in line]
    assert scans, plan
    assert "Seq Scan" not in plan, plan
    conditions = [line.strip() for line in plan.splitlines() if "Index Cond:" in line]
    assert conditions, plan
    for condition in conditions:
        assert "user_id = " in condition, plan


class TestTheHotQueries:
    async def test_of_threads_and_runs(
        self, tenants: TenantDatabase, full: tuple[Principal, Any, Any]
    ) -> None:
        person, thread_id, run_id = full
        queries: dict[str, Callable[[TenantRead], Awaitable[Any]]] = {
            "a page of threads": lambda tx: search_threads(tx, ThreadFilter()),
            "threads by creation": lambda tx: search_threads(
                tx, ThreadFilter(), sort_by="created_at"
            ),
            "some threads": lambda tx: search_threads(tx, ThreadFilter(ids=(thread_id,))),
            "how many threads": lambda tx: count_threads(tx, ThreadFilter()),
            "one thread": lambda tx: get_thread(tx, thread_id),
            "one run": lambda tx: get_run(tx, thread_id, run_id),
            "a thread's runs": lambda tx: list_runs(tx, thread_id),
        }
        for query in queries.values():
            async with tenants.reading(person) as tx:
                explaining = ExplainingRead(tx)
                await query(explaining)
            assert explaining.plans
            for plan in explaining.plans:
                assert_by_index_of_the_user(plan)

    async def test_of_a_runs_log_and_a_threads_head(
        self,
        database: TestDatabase,
        checkpoints: CheckpointPool,
        full: tuple[Principal, Any, Any],
    ) -> None:
        person, thread_id, run_id = full
        service = await database.connect("service")
        try:
            async with service.transaction():
                await service.execute("SELECT tenant.begin_read($1)", person.user_id)
                log = await service.fetch(
                    f"""
                    EXPLAIN SELECT r.state, e.seq FROM runs r
                    LEFT JOIN run_events e
                      ON e.user_id = r.user_id AND e.run_id = r.run_id AND e.seq > 3
                    WHERE r.user_id = '{person.user_id}' AND r.run_id = '{run_id}'
                    ORDER BY e.seq LIMIT 200
                    """
                )
        finally:
            await service.close()
        assert_by_index_of_the_user("\n".join(row[0] for row in log))
        async with checkpoints.transaction(person.user_id) as cursor:
            await cursor.execute(
                f"EXPLAIN {TenantReader.SELECT_SQL} WHERE thread_id = %s AND checkpoint_ns = ''"
                " ORDER BY checkpoint_id DESC LIMIT 1",
                (str(thread_id),),
            )
            head = "\n".join(row["QUERY PLAN"] for row in await cursor.fetchall())
        assert_by_index_of_the_user(head)

    async def test_of_memories_credentials_and_calls_on_record(
        self,
        database: TestDatabase,
        superuser: asyncpg.Connection,
        full: tuple[Principal, Any, Any],
    ) -> None:
        person, thread_id, _ = full
        await superuser.execute(OF_EVERYBODY)
        mine = f"user_id = '{person.user_id}'"
        queries = (
            f"SELECT * FROM tenant.memories_of('{person.user_id}')",
            (
                f"SELECT tenant.sealed_under(c.credential) FROM connections c WHERE c.{mine}"
                " AND c.server = 'notes' FOR SHARE"
            ),
            (
                f"SELECT e.state FROM effects e WHERE e.{mine} AND e.thread_id = '{thread_id}'"
                " AND e.message_id = 'm' AND e.tool_call_id = 'c' FOR UPDATE"
            ),
        )
        service = await database.connect("service")
        try:
            async with service.transaction():
                await service.execute("SELECT tenant.begin_read($1)", person.user_id)
                for query in queries:
                    plan = await service.fetch(f"EXPLAIN {query}")
                    assert_by_index_of_the_user("\n".join(row[0] for row in plan))
        finally:
            await service.close()

    async def test_of_approvals(
        self,
        database: TestDatabase,
        superuser: asyncpg.Connection,
        tenants: TenantDatabase,
        full: tuple[Principal, Any, Any],
    ) -> None:
        person, thread_id, run_id = full
        await superuser.execute(OF_EVERYBODY)
        await superuser.execute(WHAT_EVERYBODY_WAS_ASKED)
        assert await superuser.fetchval("SELECT count(*) FROM approvals") == 10 * ROWS
        queries: dict[str, Callable[[TenantRead], Awaitable[Any]]] = {
            "the inbox": lambda tx: find_approvals(tx, ApprovalFilter("open")),
            "how many wait": lambda tx: count_approvals(tx, ApprovalFilter("open")),
            "a thread's": lambda tx: find_approvals(tx, ApprovalFilter(thread_id=thread_id)),
            "a run's": lambda tx: list_approvals(tx, ApprovalFilter(run_id=run_id)),
            "some": lambda tx: list_approvals(tx, ApprovalFilter(ids=[run_id])),
        }
        for name, query in queries.items():
            async with tenants.reading(person) as tx:
                explaining = ExplainingRead(tx)
                await query(explaining)
            assert explaining.plans, name
            assert "approvals_to_expire" not in "".join(explaining.plans), explaining.plans
            for plan in explaining.plans:
                assert_by_index_of_the_user(plan)
        mine = f"a.user_id = '{person.user_id}'"
        service, dispatch = [await database.connect(role) for role in ("service", "dispatch")]
        try:
            async with service.transaction():
                await service.execute("SELECT tenant.begin_read($1)", person.user_id)
                for asked in (
                    f"{mine} AND a.run_id = '{run_id}' AND a.state = 'open'",
                    f"{mine} AND a.thread_id = '{thread_id}' AND a.for_thread AND a.tool = 'fetch'",
                ):
                    plan = await service.fetch(f"EXPLAIN SELECT FROM approvals a WHERE {asked}")
                    assert_by_index_of_the_user("\n".join(row[0] for row in plan))
            rows = await dispatch.fetch(
                "EXPLAIN SELECT a.user_id, a.run_id FROM approvals a JOIN users u USING (user_id)"
                " WHERE a.state = 'open' AND a.expires_at <= (SELECT clock_timestamp())"
                " AND u.state = 'active' ORDER BY a.expires_at LIMIT 100"
            )
            overdue = "\n".join(row[0] for row in rows)
            assert "approvals_to_expire" in overdue, overdue
            assert "Seq Scan on approvals" not in overdue, overdue
        finally:
            for connection in (service, dispatch):
                await connection.close()

    async def test_a_lost_index_would_be_noticed(
        self,
        superuser: asyncpg.Connection,
        tenants: TenantDatabase,
        full: tuple[Principal, Any, Any],
    ) -> None:
        person, _, _ = full
        await superuser.execute(
            "DROP INDEX threads_by_update, threads_by_creation;"
            "ALTER TABLE threads DROP CONSTRAINT threads_pkey CASCADE"
        )
        async with tenants.reading(person) as tx:
            explaining = ExplainingRead(tx)
            await count_threads(explaining, ThreadFilter())
        with pytest.raises(AssertionError, match="Seq Scan"):
            assert_by_index_of_the_user(explaining.plans[0])
