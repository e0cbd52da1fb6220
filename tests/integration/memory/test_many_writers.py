"""Many processes that write for one person at once: nothing is lost, nothing is kept twice."""

from __future__ import annotations

import asyncio
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from uuid import UUID

from app.memory.memories import Memories
from tenancy.checkpoints.pool import CheckpointPool
from tenancy.checkpoints.store import TenantStore
from tenancy.database.engine import DatabaseSettings
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import Principal, UserId
from tests.integration.memory.conftest import LIMITS, PATIENCE
from tests.support.tenancy import TestDatabase


@dataclass(frozen=True)
class Writer:
    """For whom a process writes."""

    user_id: UserId


PROCESSES = 20
EACH = 5
SHARED = "Everybody says this."


def write(number: int, dsn: str, user: UUID) -> int:
    """What one process does: it remembers, as a page does, and keeps items, as a graph does."""
    return asyncio.run(_write(number, dsn, UserId(user)))


async def _write(number: int, dsn: str, user: UserId) -> int:
    settings = DatabaseSettings(
        dsn=dsn,
        pool_size=1,
        statement_timeout=PATIENCE,
        idle_in_transaction_timeout=PATIENCE,
        connect_timeout=PATIENCE,
        acquire_timeout=PATIENCE,
    )
    database, pool = TenantDatabase(settings), CheckpointPool(settings)
    await pool.open()
    memories, store = Memories(database, LIMITS), TenantStore(pool, user, limits=LIMITS)
    new = 0
    for each in range(EACH):
        await memories.add(Writer(user), f"Process {number} says {each}.")
        await store.aput(("notes", f"{number}"), f"{each}", {"of": number})
        new += (await memories.add(Writer(user), SHARED))[1]
    await pool.close()
    await database.close()
    return new


class TestTwentyProcesses:
    async def test_lose_nothing_and_keep_nothing_twice(
        self,
        database: TestDatabase,
        tenants: TenantDatabase,
        checkpoints: CheckpointPool,
        alice: Principal,
        bob: Principal,
    ) -> None:
        # Forked from a process with nothing in it but these modules: that of the tests has threads.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__])
        with ProcessPoolExecutor(PROCESSES, mp_context=context) as processes:
            written = await asyncio.to_thread(
                lambda: list(
                    processes.map(
                        write,
                        range(PROCESSES),
                        repeat(database.dsn("service")),
                        repeat(UUID(str(alice.user_id))),
                    )
                )
            )
        assert sum(written) == 1
        memories = Memories(tenants, LIMITS)
        kept, total = await memories.page(alice, limit=1000, offset=0)
        said = {f"Process {n} says {m}." for n in range(PROCESSES) for m in range(EACH)}
        assert {memory.content for memory in kept} == said | {SHARED}
        assert total == PROCESSES * EACH + 1
        store = TenantStore(checkpoints, alice.user_id)
        notes = await store.asearch(("notes",), limit=1000)
        assert len(notes) == PROCESSES * EACH
        assert (await memories.page(bob, limit=1, offset=0))[1] == 0
