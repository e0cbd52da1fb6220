"""Looks for what is due at a steady pace. Any number of workers may do so at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog
from prometheus_client import CollectorRegistry

from app.databases import maintenance_settings
from app.worker.retention.batches import OWNERS, ROWS, Work, in_peace
from app.worker.retention.duties import duties
from app.worker.retention.meter import RetentionMeter
from tenancy.database.roles import assert_role
from tenancy.database.upkeep import UpkeepDatabase

if TYPE_CHECKING:
    from app.settings import Settings
    from tenancy.database.tenant import TenantDatabase

log = structlog.get_logger(__name__)

EVERY_SECONDS = 30.0


class Retention:
    """Drops what is due, if there is a maintenance role to look with.

    ``owners`` are looked up at once, and ``rows`` deleted in one transaction.
    """

    def __init__(
        self,
        settings: Settings,
        database: TenantDatabase,
        every_seconds: float = EVERY_SECONDS,
        *,
        metrics: CollectorRegistry | None = None,
        owners: int = OWNERS,
        rows: int = ROWS,
    ) -> None:
        self._settings = settings
        self._database = database
        self._every_seconds = every_seconds
        self._meter = RetentionMeter(metrics or CollectorRegistry())
        self._batches = (owners, rows)
        self._duties = duties(settings)
        self._upkeep: UpkeepDatabase | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to look.

        Raises:
            WrongRole: the maintenance role may do more or less than it must.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        if self._settings.maintenance_database_url is None:
            log.warning("nothing is ever dropped: STOA_MAINTENANCE_DATABASE_URL is not set")
            return
        maintenance = maintenance_settings(self._settings)
        await assert_role(maintenance, reads_content=False)
        self._upkeep = UpkeepDatabase(maintenance)
        await self._upkeep.assert_role()
        for duty in self._duties:
            self._meter.add_kind(duty.kind)
        work = Work(self._upkeep, self._database, self._meter, *self._batches)
        self._task = asyncio.create_task(self._look_for_ever(work), name="retention")

    async def stop(self) -> None:
        """Stop at once; what was begun is rolled back, and found again."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._upkeep is not None:
            await self._upkeep.close()

    async def _look_for_ever(self, work: Work) -> None:
        while True:
            for duty in self._duties:
                await in_peace(duty, work)
            self._meter.passed()
            await asyncio.sleep(self._every_seconds)
