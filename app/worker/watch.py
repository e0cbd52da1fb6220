"""Learns what was asked of this worker's runs meanwhile: to stop, or to let go of them.

A hint says when to look; without one, it looks at every heartbeat.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from app.logging import facts_of
from tenancy.errors import StoaError

if TYPE_CHECKING:
    from uuid import UUID

    from app.worker.claim import Claimer
    from tenancy.database.crossing import DispatchDatabase

log = structlog.get_logger(__name__)


class Watcher:
    """Stops runs whose cancel was accepted, and those that the worker has lost."""

    def __init__(
        self, worker_id: UUID, dispatch: DispatchDatabase, claimer: Claimer, look_seconds: float
    ) -> None:
        self._worker_id = worker_id
        self._dispatch = dispatch
        self._claimer = claimer
        self._look_seconds = look_seconds
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to watch."""
        self._task = asyncio.create_task(self._watch_for_ever(), name="watcher")

    async def stop(self) -> None:
        """Watch no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def hear(self, payload: str | None) -> None:
        """Runs were told to stop: look, if one of them may be this worker's."""
        if payload is None or any(str(run_id) in payload for run_id in self._claimer.running):
            self._wanted.set()

    async def _watch_for_ever(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._look_seconds):
                    await self._wanted.wait()
            except TimeoutError:
                pass
            self._wanted.clear()
            try:
                await self._look()
            except StoaError as error:
                log.warning("watching failed", **facts_of(error))
            except Exception:
                log.exception("watching broke")

    async def _look(self) -> None:
        running = dict(self._claimer.running)  # what begins from now on is not looked at
        if not running:
            return
        held = {
            each.run: each.cancel_requested
            for each in await self._dispatch.held_runs(self._worker_id)
        }
        for one in running.values():
            if held.get(one.run, True) and not one.stop.cancelled.is_set():
                one.stop.cancel()
