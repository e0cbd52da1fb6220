"""What was committed without waiting for the disk is on it when somebody has waited for that."""

from __future__ import annotations

import asyncpg

from tenancy.database.calls import FunctionCalls
from tenancy.database.flush import Flush
from tests.support.tenancy import TestDatabase

IS_ON_DISK = "SELECT pg_current_wal_flush_lsn() >= $1::pg_lsn"


class TestAFlush:
    async def test_has_all_on_disk_that_was_committed_before(
        self, database: TestDatabase, superuser: asyncpg.Connection
    ) -> None:
        await superuser.execute(f"ALTER DATABASE {database.name} SET synchronous_commit = on")
        calls = FunctionCalls(database.settings("dispatch"))
        flush = Flush(calls)
        try:
            await flush.wait()
            for _ in range(5):  # the server's own writer comes by now and then
                await superuser.execute(
                    "SET synchronous_commit = off; UPDATE claims SET vnow = vnow + 1"
                )
                committed = await superuser.fetchval("SELECT pg_current_wal_insert_lsn()")
                await flush.wait()
                assert await superuser.fetchval(IS_ON_DISK, committed)
        finally:
            await calls.close()
