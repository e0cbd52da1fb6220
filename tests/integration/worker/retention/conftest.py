"""A retention that looks all the time, and runs that have ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import asyncpg
import pytest

from app.runs.events import Event, append_events, settle_run
from app.settings import Settings
from app.worker.retention import Retention
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import ClaimedRun, Principal
from tenancy.run_states import RunState
from tests.support.tenancy import TestDatabase, claimed_run, make_thread

EVENTS = (
    *("metadata", "values", "messages", "messages|sub:1", "messages/metadata"),
    *("messages/partial", "messages/partial|sub:1", "messages", "messages/complete"),
    *("updates", "custom", "values"),
)
HOURS = 3600.0
DAY = 24 * HOURS
PATIENCE = 30.0

Retaining = Callable[..., AbstractAsyncContextManager[Retention]]


@pytest.fixture
def retaining(database: TestDatabase, tenants: TenantDatabase) -> Retaining:
    """A retention that looks all the time."""

    @asynccontextmanager
    async def started(
        *, owners: int = 100, rows: int = 1000, metrics: Any = None, **settings: Any
    ) -> AsyncIterator[Retention]:
        chosen = {"maintenance_database_url": database.dsn("maintenance"), **settings}
        service = Retention(
            Settings(**chosen),
            tenants,
            every_seconds=0.01,
            metrics=metrics,
            owners=owners,
            rows=rows,
        )
        await service.start()
        try:
            yield service
        finally:
            await service.stop()

    return started


@pytest.fixture
def ended_run(tenants: TenantDatabase, dispatch: DispatchDatabase) -> Callable[..., Any]:
    async def ended(person: Principal, state: RunState = RunState.SUCCESS) -> ClaimedRun:
        run = await claimed_run(tenants, dispatch, person, await make_thread(tenants, person))
        await append_events(tenants, run, 1, [Event(name, b"{}") for name in EVENTS])
        failed = state is RunState.ERROR
        code, message = ("graph_failed", "It failed.") if failed else (None, None)
        await settle_run(
            tenants, run, state, len(EVENTS) + 1, [], error_code=code, error_message=message
        )
        return run

    return ended


async def until(superuser: asyncpg.Connection, query: str, *arguments: object) -> None:
    """Wait until a question is answered with yes."""
    async with asyncio.timeout(PATIENCE):
        while not await superuser.fetchval(query, *arguments):  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)
