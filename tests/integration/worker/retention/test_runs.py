"""Logs of runs, and runs themselves, go so long after the end; what they wrote stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import asyncpg
from prometheus_client import CollectorRegistry

from app.runs.events import Event, append_events, read_log
from app.runs.log_position import last_seq
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import ClaimedRun, Principal
from tests.integration.worker.retention.conftest import DAY, EVENTS, Retaining, until
from tests.support.tenancy import claimed_run, make_thread

EndedRun = Callable[..., Any]
DROPPED = "SELECT log_dropped_at IS NOT NULL FROM runs WHERE run_id = $1"
GONE = "SELECT NOT EXISTS (SELECT FROM runs WHERE run_id = $1)"


async def age(superuser: asyncpg.Connection, run: ClaimedRun, days: int) -> None:
    """Let a run have ended so long ago."""
    await superuser.execute(
        "UPDATE runs SET ended_at = ended_at - make_interval(days => $2) WHERE run_id = $1",
        run.run_id,
        days,
    )


class TestALog:
    async def test_goes_a_month_after_its_run_and_says_how_far_it_came(
        self,
        tenants: TenantDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        retaining: Retaining,
        ended_run: EndedRun,
    ) -> None:
        old, young = await ended_run(alice), await ended_run(alice)
        await age(superuser, old, 31)
        await age(superuser, young, 29)
        async with retaining(rows=3):
            await until(superuser, DROPPED, old.run_id)
        page = await read_log(tenants, old, old.run_id, 0)
        assert page is not None
        assert (page.events, page.dropped_through, page.is_last) == ((), len(EVENTS), True)
        assert not await superuser.fetchval(DROPPED, young.run_id)
        async with tenants.reading(alice) as tx:
            assert await last_seq(tx, old.run_id) == len(EVENTS)

    async def test_stays_where_the_operator_keeps_logs_for_ever(
        self,
        superuser: asyncpg.Connection,
        alice: Principal,
        retaining: Retaining,
        ended_run: EndedRun,
    ) -> None:
        run = await ended_run(alice)
        await age(superuser, run, 3000)
        async with retaining(event_retention_seconds=0):
            await until(
                superuser, "SELECT pruned_at IS NOT NULL FROM runs WHERE run_id = $1", run.run_id
            )
        assert not await superuser.fetchval(DROPPED, run.run_id)

    async def test_of_a_run_under_way_stays(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        retaining: Retaining,
        ended_run: EndedRun,
    ) -> None:
        running = await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        await append_events(tenants, running, 1, [Event("custom", b"{}")])
        ended = await ended_run(alice)
        async with retaining(event_retention_seconds=1e-6, run_retention_seconds=1e-6):
            await until(superuser, GONE, ended.run_id)
        page = await read_log(tenants, running, running.run_id, 0)
        assert page is not None
        assert len(page.events) == 1


class TestARun:
    async def test_goes_with_its_log_in_batches_and_is_counted(
        self,
        superuser: asyncpg.Connection,
        alice: Principal,
        retaining: Retaining,
        ended_run: EndedRun,
    ) -> None:
        old, young = await ended_run(alice), await ended_run(alice)
        await age(superuser, old, 8)
        metrics = CollectorRegistry()
        settings = {"run_retention_seconds": 7 * DAY, "event_retention_seconds": 0}
        async with retaining(rows=5, metrics=metrics, **settings):
            await until(superuser, GONE, old.run_id)
            await passed(superuser, metrics)
        assert not await superuser.fetchval(
            "SELECT count(*) FROM run_events WHERE run_id = $1", old.run_id
        )
        assert not await superuser.fetchval(GONE, young.run_id)
        dropped = metrics.get_sample_value("stoa_retention_rows_dropped_total", {"kind": "runs"})
        pieces = metrics.get_sample_value(
            "stoa_retention_rows_dropped_total", {"kind": "message_pieces"}
        )
        assert (dropped or 0) + (pieces or 0) == len(EVENTS) + 1

    async def test_stays_unless_the_operator_says_otherwise(
        self,
        superuser: asyncpg.Connection,
        alice: Principal,
        retaining: Retaining,
        ended_run: EndedRun,
    ) -> None:
        run = await ended_run(alice)
        await age(superuser, run, 3000)
        async with retaining():
            await until(superuser, DROPPED, run.run_id)
        assert not await superuser.fetchval(GONE, run.run_id)


class TestWhatIsFarBehind:
    async def test_is_told(
        self,
        superuser: asyncpg.Connection,
        alice: Principal,
        retaining: Retaining,
        ended_run: EndedRun,
    ) -> None:
        """An operator sees how late retention is, by kind, and when it last looked."""
        run = await ended_run(alice)
        await age(superuser, run, 32)
        # What holds it up, and makes it late.
        await superuser.execute("BEGIN")
        await superuser.execute("SELECT FROM runs WHERE run_id = $1 FOR UPDATE", run.run_id)
        metrics = CollectorRegistry()
        async with retaining(metrics=metrics):
            for _ in range(2):
                await passed(superuser, metrics)
            kind = {"kind": "events"}
            late = metrics.get_sample_value("stoa_retention_oldest_due_seconds", kind)
            none = metrics.get_sample_value("stoa_retention_oldest_due_seconds", {"kind": "audit"})
            assert late is not None
            assert 2 * DAY <= late < 2 * DAY + 3600
            assert none == 0
            await superuser.execute("COMMIT")
            await until(superuser, DROPPED, run.run_id)
            for _ in range(2):
                await passed(superuser, metrics)
        assert metrics.get_sample_value("stoa_retention_oldest_due_seconds", kind) == 0


async def passed(superuser: asyncpg.Connection, metrics: CollectorRegistry) -> None:
    """Wait for the end of one more pass."""
    last = "stoa_retention_last_pass_timestamp_seconds"
    before = metrics.get_sample_value(last)
    while metrics.get_sample_value(last) == before:
        await superuser.fetchval("SELECT pg_sleep(0.01)")
