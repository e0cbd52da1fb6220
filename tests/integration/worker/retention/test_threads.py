"""Threads go when their time is over, their own or the operator's; not while a run is open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from app.runs.threads import ThreadFilter, create_thread, get_thread, search_threads, update_thread
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import Principal
from tests.integration.worker.retention.conftest import DAY, Retaining, until
from tests.support.tenancy import claimed_run, queue_run

GONE = "SELECT NOT EXISTS (SELECT FROM threads WHERE thread_id = $1)"
Thread = Callable[..., Any]


@pytest.fixture
def thread(tenants: TenantDatabase, superuser: asyncpg.Connection, alice: Principal) -> Thread:
    """A thread of Alice's in which nothing has happened for so many days."""

    async def made(ttl_minutes: float | None = None, days: int = 0) -> UUID:
        async with tenants.writing(alice) as tx:
            found = await create_thread(tx, ttl_minutes=ttl_minutes)
        await idle(superuser, found.thread_id, days)
        return found.thread_id

    return made


async def idle(superuser: asyncpg.Connection, thread_id: UUID, days: int) -> None:
    await superuser.execute(
        "UPDATE threads SET updated_at = updated_at - make_interval(days => $2)"
        " WHERE thread_id = $1",
        thread_id,
        days,
    )


async def left(tenants: TenantDatabase, person: Principal) -> set[UUID]:
    async with tenants.reading(person) as tx:
        return {each.thread_id for each in await search_threads(tx, ThreadFilter(), limit=100)}


class TestAThreadWithATimeOfItsOwn:
    async def test_goes_when_that_is_over(
        self,
        tenants: TenantDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        thread: Thread,
        retaining: Retaining,
    ) -> None:
        minutes = 2 * DAY / 60
        over, not_yet, none = await thread(minutes, 3), await thread(minutes, 1), await thread()
        async with retaining():
            await until(superuser, GONE, over)
        assert await left(tenants, alice) == {not_yet, none}

    async def test_has_it_anew_with_every_change(
        self,
        tenants: TenantDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        thread: Thread,
        retaining: Retaining,
    ) -> None:
        changed, other = await thread(60, 1), await thread(60, 1)
        async with tenants.writing(alice) as tx:
            await update_thread(tx, changed, metadata={"still": "wanted"})
        async with retaining():
            await until(superuser, GONE, other)
        assert await left(tenants, alice) == {changed}

    async def test_has_it_anew_when_a_run_ends_in_it(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        thread: Thread,
        retaining: Retaining,
    ) -> None:
        """A long answer is not gone before anybody could read it."""
        answered, other = await thread(60), await thread(60, 1)
        run = await claimed_run(tenants, dispatch, alice, answered)
        await idle(superuser, answered, 1)
        await superuser.execute(
            "UPDATE runs SET state = 'success', worker_id = NULL, ended_at = clock_timestamp()"
            " WHERE run_id = $1",
            run.run_id,
        )
        async with tenants.reading(alice) as tx:
            expires_at = (await get_thread(tx, answered)).expires_at
        assert await superuser.fetchval(
            "SELECT ended_at + interval '1 hour' = $2 FROM runs WHERE run_id = $1",
            run.run_id,
            expires_at,
        )
        async with retaining():
            await until(superuser, GONE, other)
        assert await left(tenants, alice) == {answered}

    @pytest.mark.parametrize("state", ["pending", "running", "waiting"])
    async def test_stays_while_a_run_is_open(
        self,
        state: str,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        thread: Thread,
        retaining: Retaining,
    ) -> None:
        held, other = await thread(60), await thread(60, 1)
        if state == "pending":
            await queue_run(tenants, alice, held)
        else:
            run = await claimed_run(tenants, dispatch, alice, held)
            await superuser.execute(
                "UPDATE runs SET state = $2::run_state,"
                " worker_id = CASE WHEN $2 = 'running' THEN worker_id END WHERE run_id = $1",
                run.run_id,
                state,
            )
        await idle(superuser, held, 1)
        async with retaining(thread_idle_seconds=60):
            await until(superuser, GONE, other)
        assert await left(tenants, alice) == {held}


class TestAnIdleThread:
    async def test_goes_where_the_operator_wants_it(
        self,
        tenants: TenantDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        thread: Thread,
        retaining: Retaining,
    ) -> None:
        idle_one, used, patient = await thread(None, 8), await thread(), await thread(1e6, 8)
        async with retaining(thread_idle_seconds=7 * DAY):
            await until(superuser, GONE, idle_one)
            await until(superuser, GONE, patient)
        assert await left(tenants, alice) == {used}

    async def test_stays_otherwise(
        self,
        tenants: TenantDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        thread: Thread,
        retaining: Retaining,
    ) -> None:
        idle_one, over = await thread(None, 3000), await thread(60, 1)
        async with retaining():
            await until(superuser, GONE, over)
        assert await left(tenants, alice) == {idle_one}
