"""Closes questions that nobody decided in time; their runs go on, and the model is told.

Which are overdue is found through the cross-user door, by ids; each run's are closed for its user
through the tenant door. One look for all of them at a steady pace: a waiting run has no timer.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from app.logging import facts_of
from app.runs.tail import run_key
from tenancy.errors import StoaError

if TYPE_CHECKING:
    from tenancy.database.crossing import DispatchDatabase, OverdueRun
    from tenancy.database.signals import Announcer
    from tenancy.database.tenant import TenantDatabase

log = structlog.get_logger(__name__)

EVERY_SECONDS = 15.0
BATCH = 100
"""Questions that are looked up at once."""

_EXPIRE = "SELECT expired, resumed FROM tenant.expire_approvals($1, $2)"


class ApprovalExpiry:
    """Looks for overdue questions until stopped. Any number may do so at once."""

    def __init__(
        self,
        dispatch: DispatchDatabase,
        database: TenantDatabase,
        announcer: Announcer,
        every_seconds: float = EVERY_SECONDS,
    ) -> None:
        self._dispatch = dispatch
        self._database = database
        self._announcer = announcer
        self._every_seconds = every_seconds
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to look."""
        self._task = asyncio.create_task(self._look_for_ever(), name="approval expiry")

    async def stop(self) -> None:
        """Stop at once; what was begun is rolled back, and found again."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _look_for_ever(self) -> None:
        while True:
            try:
                while await self._expire_batch():
                    pass
            except StoaError as error:
                log.warning("looking for expired approvals failed", **facts_of(error))
            except Exception:
                log.exception("looking for expired approvals broke")
            await asyncio.sleep(self._every_seconds)

    async def _expire_batch(self) -> bool:
        """Close a batch; whether that was worth looking for more at once."""
        overdue = await self._dispatch.find_expired_approvals(BATCH)
        closed = [await self._expire(run) for run in overdue]
        return any(closed)

    async def _expire(self, run: OverdueRun) -> bool:
        """Close what one run asked for too long; where that fails, the others are closed still."""
        try:
            (row,) = await self._database.call(run, _EXPIRE, run.run_id)
        except StoaError as error:
            log.warning("approvals could not be closed", **facts_of(error))
            return False
        if row["expired"] == 0:
            return False
        key = run_key(run.user_id, run.run_id)
        self._announcer.approval_changed(key)
        self._announcer.run_changed(key)
        if row["resumed"]:
            self._announcer.run_queued()
        return True
