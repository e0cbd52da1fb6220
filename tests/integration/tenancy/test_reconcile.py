"""Reconciliation against a real database: what dead workers left goes back, the rest stays."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from datetime import timedelta
from uuid import UUID, uuid4

import asyncpg
import pytest

from app.runs.events import append_events
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.engine import DatabaseUnavailable
from tenancy.database.tenant import TenantDatabase
from tenancy.errors import LeaseLost
from tenancy.principal import Principal
from tenancy.reconcile.facts import Disposition, Found, Kind, Liveness
from tenancy.reconcile.passing import reconcile
from tenancy.reconcile.processes import process_start
from tenancy.reconcile.summary import Finding, Preservation, Summary
from tests.support.tenancy import (
    LEASE_SECONDS,
    TestDatabase,
    claim_runs,
    claimed_run,
    expire_leases,
    make_thread,
    make_worker,
    queue_run,
)

HERE = socket.gethostname()


async def one_pass(database: TestDatabase, *, dry_run: bool = False) -> Summary:
    return await reconcile(database.settings("dispatch"), dry_run=dry_run)


def words(finding: Finding) -> tuple[Found | None, Liveness, Disposition]:
    verdict = finding.verdict
    return verdict.found, verdict.liveness, verdict.disposition


async def everything(superuser: asyncpg.Connection) -> list[asyncpg.Record]:
    """All that a pass might change."""
    return [
        *await superuser.fetch("SELECT * FROM runs ORDER BY run_id"),
        *await superuser.fetch("SELECT * FROM workers ORDER BY worker_id"),
        *await superuser.fetch("SELECT * FROM run_attempts ORDER BY run_id, fence"),
    ]


async def registered(dispatch: DispatchDatabase, host: str, pid: int, **start: object) -> UUID:
    worker_id = uuid4()
    await dispatch.register_worker(worker_id, host, pid, LEASE_SECONDS, **start)  # type: ignore[arg-type]
    return worker_id


class TestARunOfADeadWorker:
    async def test_goes_back_into_the_queue_under_a_higher_fence_and_its_worker_goes(
        self,
        database: TestDatabase,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        run = await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        await expire_leases(superuser)
        worker, lost = (await one_pass(database)).findings
        assert (lost.kind, lost.id) == (Kind.RUN, run.run_id)
        assert words(lost) == (Found.NO_HANDLE, Liveness.DEAD, Disposition.REPAIRED)
        assert worker.kind is Kind.WORKER
        assert words(worker) == (Found.NO_HANDLE, Liveness.DEAD, Disposition.STOPPED)
        row = await superuser.fetchrow(
            "SELECT state::text, fence, attempts_spent, worker_id FROM runs"
        )
        assert tuple(row) == ("pending", run.fence + 1, 1, None)
        assert await superuser.fetchval("SELECT ended_by FROM run_attempts") == "lost"
        assert await superuser.fetchval("SELECT count(*) FROM workers") == 0
        with pytest.raises(LeaseLost):
            await append_events(tenants, run, 1, [])

    async def test_keeps_its_place_and_what_it_wrote(
        self,
        database: TestDatabase,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        thread_id = await make_thread(tenants, alice)
        run = await claimed_run(tenants, dispatch, alice, thread_id)
        await queue_run(tenants, alice, thread_id)
        await superuser.execute(
            "INSERT INTO checkpoints (user_id, thread_id, checkpoint_id, checkpoint, run_id)"
            " VALUES ($1, $2, '1', '{}', $3)",
            *(alice.user_id, thread_id, run.run_id),
        )
        await expire_leases(superuser)
        await one_pass(database)
        assert await superuser.fetchval("SELECT count(*) FROM checkpoints") == 1
        (again,) = await claim_runs(dispatch, await make_worker(dispatch), 9, 9)
        assert again.run_id == run.run_id

    async def test_is_left_alone_while_its_owner_has_it_locked_and_so_is_its_worker(
        self,
        database: TestDatabase,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        await expire_leases(superuser)
        async with superuser.transaction():
            await superuser.execute("SELECT 1 FROM runs FOR UPDATE")
            summary = await one_pass(database)
        preserved = Preservation(
            Disposition.PRESERVED, Liveness.REMOTE, Found.NO_HANDLE, pid_present=True
        )
        assert summary.preserved == {preserved: 2}
        assert not summary.changed
        assert (await one_pass(database)).count(Kind.RUN, Disposition.REPAIRED) == 1

    async def test_that_has_no_worker_at_all_goes_back_too(
        self,
        database: TestDatabase,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        run = await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        # What the foreign key forbids, and a restored backup may hold.
        async with superuser.transaction():
            await superuser.execute("SET LOCAL session_replication_role = replica")
            await superuser.execute("DELETE FROM workers")
        (lost,) = (await one_pass(database)).findings
        assert (lost.id, lost.pid_present) == (run.run_id, False)
        assert words(lost) == (Found.NO_HANDLE, Liveness.DEAD, Disposition.REPAIRED)


class TestAWorkerWhoseLeaseLives:
    async def test_stays_with_its_run_and_is_in_order_on_whatever_host(
        self,
        database: TestDatabase,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        mine = await registered(dispatch, HERE, os.getpid(), process_started_at=process_start())
        before = await everything(superuser)
        summary = await one_pass(database)
        found = {each.id: words(each) for each in summary.findings}
        assert found.pop(mine) == (None, Liveness.ALIVE, Disposition.PRESERVED)
        assert list(found.values()) == [(Found.NO_HANDLE, Liveness.REMOTE, Disposition.PRESERVED)]
        assert not summary.preserved
        assert await everything(superuser) == before

    async def test_stays_though_its_process_is_gone_and_that_is_said(
        self, database: TestDatabase, dispatch: DispatchDatabase, superuser: asyncpg.Connection
    ) -> None:
        ended = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
        await ended.wait()
        await registered(dispatch, HERE, ended.pid)
        before = await everything(superuser)
        summary = await one_pass(database)
        (finding,) = summary.findings
        assert words(finding) == (Found.ABSENT, Liveness.DEAD, Disposition.PRESERVED)
        assert "lease is not over" in finding.verdict.why
        assert sum(summary.preserved.values()) == 1
        assert await everything(superuser) == before

    async def test_is_not_somebody_else_who_has_its_pid_now(
        self, database: TestDatabase, dispatch: DispatchDatabase
    ) -> None:
        long_ago = process_start() - timedelta(hours=1)
        await registered(dispatch, HERE, os.getpid(), process_started_at=long_ago)
        (finding,) = (await one_pass(database)).findings
        assert words(finding) == (Found.ABSENT, Liveness.DEAD, Disposition.PRESERVED)


class TestARunThatWaits:
    @pytest.mark.parametrize("state", ["pending", "waiting"])
    async def test_for_a_claim_or_a_person_is_no_finding(
        self,
        state: str,
        database: TestDatabase,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        await superuser.execute(
            "UPDATE runs SET state = $1::run_state, worker_id = NULL, fence = fence + 1", state
        )
        await expire_leases(superuser)
        (worker,) = (await one_pass(database)).findings
        assert (worker.kind, worker.verdict.disposition) == (Kind.WORKER, Disposition.STOPPED)
        assert await superuser.fetchval("SELECT state::text FROM runs") == state
        assert (await one_pass(database)).findings == ()


class TestPasses:
    async def test_a_dry_run_says_what_would_be_done_and_does_nothing(
        self,
        database: TestDatabase,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        await expire_leases(superuser)
        before = await everything(superuser)
        dry = await one_pass(database, dry_run=True)
        assert dry.changed
        assert await everything(superuser) == before
        assert (await one_pass(database)).findings == dry.findings

    async def test_a_second_one_changes_nothing(
        self,
        database: TestDatabase,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        for _ in range(3):
            await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        await expire_leases(superuser)
        await make_worker(dispatch)
        assert (await one_pass(database)).changed
        before = await everything(superuser)
        assert not (await one_pass(database)).changed
        assert await everything(superuser) == before

    async def test_several_at_once_and_a_reaper_put_each_run_back_once(
        self,
        database: TestDatabase,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        for _ in range(10):
            await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        await expire_leases(superuser)
        reaping = asyncio.create_task(dispatch.reap_expired_leases())
        summaries = await asyncio.gather(*(one_pass(database) for _ in range(3)))
        reaped = await reaping
        repaired = sum(each.count(Kind.RUN, Disposition.REPAIRED) for each in summaries)
        await one_pass(database)
        rows = await superuser.fetch("SELECT state::text, fence, attempts_spent FROM runs")
        assert {tuple(row) for row in rows} == {("pending", 2, 1)}
        assert repaired + reaped <= 10
        assert not any(each.failures for each in summaries)

    async def test_what_fails_is_told_by_its_class_and_keeps_the_rest_from_nothing(
        self,
        database: TestDatabase,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        bob: Principal,
    ) -> None:
        stuck = await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        freed = await claimed_run(tenants, dispatch, bob, await make_thread(tenants, bob))
        await expire_leases(superuser)
        await superuser.execute(
            f"""
            CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN RAISE EXCEPTION 'secret words'; END $$;
            CREATE TRIGGER refuse BEFORE UPDATE ON runs FOR EACH ROW
            WHEN (OLD.run_id = '{stuck.run_id}') EXECUTE FUNCTION refuse();
            """
        )
        summary = await one_pass(database)
        (failure,) = summary.failures
        assert (failure.id, failure.error) == (stuck.run_id, "RaiseError")
        assert failure.verdict.disposition is Disposition.PRESERVED
        assert "secret" not in repr(summary)
        repaired = [
            each.id for each in summary.findings if each.verdict.disposition is Disposition.REPAIRED
        ]
        assert repaired == [freed.run_id]

    async def test_without_a_database_there_is_one_error(self, database: TestDatabase) -> None:
        away = database.settings("dispatch")
        with pytest.raises(DatabaseUnavailable):
            await reconcile(type(away)(dsn="postgresql://r:p@127.0.0.1:1/none"))
