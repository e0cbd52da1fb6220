"""Keeps the worker's lease alive, from its own thread and its own connection.

Neither a blocked event loop nor an exhausted pool can starve it. Once the lease is lost nothing
brings it back: the process ends itself, and whoever supervises it starts a new one.

It does not wait for the database to say so, since it may be the connection that is gone: a lease
that could not be renewed is given up shortly before it can end, by a clock that also runs while the
machine sleeps, counted from before the last renewal was asked for.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from typing import TYPE_CHECKING

import structlog

from app.logging import facts_of
from tenancy.database.crossing import DispatchDatabase
from tenancy.errors import StoaError
from tenancy.reconcile.processes import process_start

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from tenancy.database.engine import DatabaseSettings

log = structlog.get_logger(__name__)

TIME_TO_END = 1 / 6
"""The part of a lease that is left when it is given up, for the runs to be ended in."""
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class LeaseKeeper:
    """Registers the worker and renews its lease until stopped."""

    def __init__(
        self,
        worker_id: UUID,
        settings: DatabaseSettings,
        lease_seconds: float,
        heartbeat_seconds: float,
        on_lost: Callable[[], None],
        time_to_end: float = TIME_TO_END,
    ) -> None:
        self._worker_id = worker_id
        self._settings = settings
        self._lease_seconds = lease_seconds
        self._heartbeat_seconds = heartbeat_seconds
        self._on_lost = on_lost
        self._time_to_end = time_to_end
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._given_up_at = 0.0

    async def start(self) -> None:
        """Open the lease and begin to renew it.

        Raises:
            DatabaseUnavailable: Postgres cannot be reached.
        """
        database = DispatchDatabase(self._settings)
        asked_at = time.clock_gettime(_CLOCK)
        try:
            await database.register_worker(
                self._worker_id,
                socket.gethostname(),
                os.getpid(),
                self._lease_seconds,
                process_start(),
            )
        finally:
            await database.close()
        self._renewed(asked_at)
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """Stop renewing; the lease itself is given back by ``retire_worker``."""
        self._stop.set()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        try:
            asyncio.run(self._renew_for_ever())
        except Exception as error:  # noqa: BLE001 - a thread's last word
            log.warning("lease thread failed", error=type(error).__name__)
            self._on_lost()

    async def _renew_for_ever(self) -> None:
        database = DispatchDatabase(self._settings)
        try:
            while not await asyncio.to_thread(self._stop.wait, self._until_next()):
                if not await self._renew_in_time(database):
                    self._on_lost()
                    return
        finally:
            await database.close()

    async def _renew_in_time(self, database: DispatchDatabase) -> bool:
        """False when the lease is over, or is about to be and nobody answers."""
        renewal = asyncio.create_task(self._renew(database), name="heartbeat")
        await asyncio.wait([renewal], timeout=max(self._left(), 0))
        if renewal.done():
            return renewal.result() and self._left() > 0
        log.warning("heartbeat not answered in time")
        renewal.cancel()
        return False

    async def _renew(self, database: DispatchDatabase) -> bool:
        """False only when the database says that the lease is over."""
        asked_at = time.clock_gettime(_CLOCK)
        try:
            renewed = await database.renew_lease(self._worker_id, self._lease_seconds)
        except StoaError as error:
            log.warning("heartbeat failed", **facts_of(error))
            return True
        if renewed:
            self._renewed(asked_at)
        return renewed

    def _renewed(self, asked_at: float) -> None:
        self._given_up_at = asked_at + self._lease_seconds * (1 - self._time_to_end)

    def _left(self) -> float:
        return self._given_up_at - time.clock_gettime(_CLOCK)

    def _until_next(self) -> float:
        return max(min(self._heartbeat_seconds, self._left()), 0)
