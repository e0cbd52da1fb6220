"""Runs for later, which are due when a test says so: not while it is still getting ready."""

from __future__ import annotations

import asyncpg

from tests.support.service import RunningService

MUCH_LATER = 3600
SOON = 0.5


async def bring_forward(service: RunningService, location: str) -> None:
    """Let a run for later be due in a moment, and have those look again who wait until then."""
    run_id = location.rpartition("/")[2]
    connection = await asyncpg.connect(service.postgres.dsn("owner", service.database))
    try:
        async with connection.transaction():
            user_id, thread_id = await connection.fetchrow(
                "UPDATE runs SET due_at = clock_timestamp() + $2 * interval '1 s'"
                " WHERE run_id = $1 RETURNING user_id, thread_id",
                run_id,
                SOON,
            )
            await connection.execute(
                "UPDATE run_queues SET claimable = true WHERE user_id = $1", user_id
            )
    finally:
        await connection.close()
    service.web.services.tail._wake(f"{user_id}/{run_id},{user_id}/{thread_id}")
