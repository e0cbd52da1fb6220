"""Puts the runs of dead workers back into the queue, where another worker finds them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from app.logging import facts_of
from tenancy.errors import StoaError

if TYPE_CHECKING:
    from tenancy.database.crossing import DispatchDatabase
    from tenancy.database.signals import Announcer

log = structlog.get_logger(__name__)


class Reaper:
    """Looks for expired leases, at a steady pace. Any number may do so at once."""

    def __init__(
        self, dispatch: DispatchDatabase, announcer: Announcer, reap_seconds: float
    ) -> None:
        self._dispatch = dispatch
        self._announcer = announcer
        self._reap_seconds = reap_seconds
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to look."""
        self._task = asyncio.create_task(self._reap_for_ever(), name="reaper")

    async def stop(self) -> None:
        """Stop looking."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _reap_for_ever(self) -> None:
        while True:
            try:
                reaped = await self._dispatch.reap_expired_leases()
            except StoaError as error:
                log.warning("reaping failed", **facts_of(error))
            except Exception:
                log.exception("reaping broke")
            else:
                if reaped:
                    log.warning("runs of dead workers requeued", runs=reaped)
                    self._announcer.run_queued()
            await asyncio.sleep(self._reap_seconds)
