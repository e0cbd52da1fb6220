"""A worker whose lease cannot be renewed ends itself before anybody may take its runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import UUID, uuid4

import asyncpg
import pytest

from app.worker.lease import TIME_TO_END, LeaseKeeper
from tests.support.tenancy import TestDatabase, expire_leases

LEASE_SECONDS = 60.0
"""Longer than a busy machine stands still."""
WARY_SECONDS = 1.0
"""After so much of it, one that is given up long before its end is."""
HEARTBEAT_SECONDS = 0.2
PATIENCE = 30.0
RENEWED = "SELECT lease_until > started_at + interval '60s' FROM workers WHERE worker_id = $1"
ALIVE = "SELECT lease_until > clock_timestamp() FROM workers WHERE worker_id = $1"
CUT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE usename = $1 AND datname = current_database()
"""
HOLD = "SELECT 1 FROM workers WHERE worker_id = $1 FOR UPDATE"


class Kept:
    """A lease that is being kept, and word of its loss."""

    def __init__(self, database: TestDatabase, time_to_end: float = TIME_TO_END) -> None:
        self._loop = asyncio.get_running_loop()
        self.worker_id: UUID = uuid4()
        self.lost = asyncio.Event()
        self.keeper = LeaseKeeper(
            self.worker_id,
            replace(database.settings("dispatch"), connect_timeout=1),
            LEASE_SECONDS,
            HEARTBEAT_SECONDS,
            self._lose,
            time_to_end,
        )

    def _lose(self) -> None:
        """Called from the keeper's thread."""
        self._loop.call_soon_threadsafe(self.lost.set)


@pytest.fixture
async def kept(database: TestDatabase) -> AsyncIterator[Kept]:
    kept = Kept(database)
    await kept.keeper.start()
    yield kept
    await kept.keeper.stop()


@pytest.fixture
async def wary(database: TestDatabase) -> AsyncIterator[Kept]:
    """One that is given up when nearly all of it is left: time to see that it has not ended."""
    kept = Kept(database, 1 - WARY_SECONDS / LEASE_SECONDS)
    await kept.keeper.start()
    yield kept
    await kept.keeper.stop()


async def test_a_lease_is_renewed_for_as_long_as_the_database_answers(
    kept: Kept, superuser: asyncpg.Connection
) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await superuser.fetchval(RENEWED, kept.worker_id):
            assert not kept.lost.is_set()


async def test_a_lease_whose_renewal_is_not_answered_is_given_up_before_it_ends(
    wary: Kept, superuser: asyncpg.Connection
) -> None:
    async with superuser.transaction(), asyncio.timeout(PATIENCE):
        await superuser.execute(HOLD, wary.worker_id)
        await wary.lost.wait()
        assert await superuser.fetchval(ALIVE, wary.worker_id)


async def test_a_lease_that_cannot_be_renewed_is_given_up_before_it_ends(
    wary: Kept, database: TestDatabase, superuser: asyncpg.Connection
) -> None:
    await superuser.execute(f'ALTER DATABASE "{database.name}" CONNECTION LIMIT 0')
    await superuser.execute(CUT, database.roles().dispatch)
    async with asyncio.timeout(PATIENCE):
        await wary.lost.wait()
    assert await superuser.fetchval(ALIVE, wary.worker_id)


async def test_a_lease_that_is_over_is_lost_at_the_next_heartbeat(
    kept: Kept, superuser: asyncpg.Connection
) -> None:
    await expire_leases(superuser)
    async with asyncio.timeout(PATIENCE):
        await kept.lost.wait()
