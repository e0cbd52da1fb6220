"""Drops what is kept for a while only.

That is: deltas of ended runs, idempotency keys, expired items of stores, authorizations that nobody
finished, deleted threads. What is due is found through the upkeep door, which reads nothing that
people said, and done for each user through the tenant door, in batches. Any number of workers may
do so at once.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from app.databases import maintenance_settings
from app.logging import facts_of
from tenancy.database.roles import assert_role
from tenancy.database.upkeep import UpkeepDatabase
from tenancy.errors import StoaError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from app.settings import Settings
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner

log = structlog.get_logger(__name__)

EVERY_SECONDS = 30.0
BATCH = 100
"""Runs, users or threads that are looked up at once."""
ROWS = 1000
"""Rows that one transaction deletes."""

_PRUNE = "SELECT tenant.prune_deltas($1, $2, $3)"
_DROP_KEYS = "SELECT tenant.drop_idempotency_keys($1, $2)"
_DROP_ITEMS = "SELECT tenant.drop_expired_items($1, $2)"
_DROP_AUTHORIZATIONS = "SELECT tenant.drop_expired_authorizations($1, $2)"
_DELETE_THREAD = "SELECT tenant.delete_thread_rows($1, $2, $3)"


class Retention:
    """Looks for what is due at a steady pace, if there is a maintenance role to look with."""

    def __init__(
        self, settings: Settings, database: TenantDatabase, every_seconds: float = EVERY_SECONDS
    ) -> None:
        self._settings = settings
        self._database = database
        self._every_seconds = every_seconds
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
        self._task = asyncio.create_task(self._look_for_ever(self._upkeep), name="retention")

    async def stop(self) -> None:
        """Stop at once; what was begun is rolled back, and found again."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._upkeep is not None:
            await self._upkeep.close()

    async def _look_for_ever(self, upkeep: UpkeepDatabase) -> None:
        while True:
            for duty in (
                *(self._prune_logs, self._drop_keys, self._drop_items),
                *(self._drop_authorizations, self._delete_threads),
            ):
                await _in_peace(duty, upkeep)
            await asyncio.sleep(self._every_seconds)

    async def _prune_logs(self, upkeep: UpkeepDatabase) -> None:
        older_than = self._settings.delta_retention_seconds
        while runs := await upkeep.unpruned_runs(older_than, BATCH):
            for run in runs:
                await self._until_done(run, _PRUNE, run.row_id)

    async def _drop_keys(self, upkeep: UpkeepDatabase) -> None:
        while owners := await upkeep.owners_of_stale_keys(BATCH):
            for owner in owners:
                await self._until_done(owner, _DROP_KEYS)

    async def _drop_items(self, upkeep: UpkeepDatabase) -> None:
        while owners := await upkeep.owners_of_expired_items(BATCH):
            for owner in owners:
                await self._until_done(owner, _DROP_ITEMS)

    async def _drop_authorizations(self, upkeep: UpkeepDatabase) -> None:
        while owners := await upkeep.owners_of_expired_authorizations(BATCH):
            for owner in owners:
                await self._until_done(owner, _DROP_AUTHORIZATIONS)

    async def _delete_threads(self, upkeep: UpkeepDatabase) -> None:
        while threads := await upkeep.deleted_threads(BATCH):
            for thread in threads:
                await self._until_done(thread, _DELETE_THREAD, thread.row_id)

    async def _until_done(self, owner: Owner, function: str, *what: object) -> None:
        """Call a function for an owner until it has left nothing to do."""
        while True:
            (row,) = await self._database.call(owner, function, *what, ROWS)
            if row[0]:
                return


async def _in_peace(
    duty: Callable[[UpkeepDatabase], Awaitable[None]], upkeep: UpkeepDatabase
) -> None:
    """Do one duty; if it fails, the others are done all the same, and it is tried again later."""
    try:
        await duty(upkeep)
    except StoaError as error:
        log.warning("retention failed", **facts_of(error))
    except Exception:
        log.exception("retention broke")
