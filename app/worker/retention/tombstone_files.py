"""Tombstones' files whose time is over: what a restore knows nobody by any more."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.erasure.tombstone_files import TombstoneFolder
    from app.worker.retention.batches import Work

EVERY_SECONDS = 3600.0
"""Each look reads every file, and they are kept for months."""


class TombstoneFiles:
    """Deletes them from a folder, which any number of workers may share."""

    kind = "tombstone_files"

    def __init__(self, folder: TombstoneFolder, every_seconds: float = EVERY_SECONDS) -> None:
        self._folder = folder
        self._every_seconds = every_seconds
        self._next = 0.0

    async def perform(self, work: Work) -> None:
        """Delete those that are over by the database's clock, unless that was done just now.

        Raises:
            TombstoneUnusable: one cannot be read.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        if time.monotonic() < self._next:
            return
        now = await work.upkeep.now()
        work.meter.dropped(self.kind, await asyncio.to_thread(self._folder.drop_expired, now))
        self._next = time.monotonic() + self._every_seconds
