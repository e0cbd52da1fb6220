"""Why and how fast a worker process ends."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

from tenancy.errors import StoaError


class LostLease(StoaError):
    """The worker's own lease ran out; it must not go on."""

    code = "worker_lease_lost"
    message = "This worker lost its lease and ended itself. Start a new one."


class EndOfProcess:
    """The first signal asks for an end, a second one for a quick one; a lost lease is the end.

    ``on_hurry`` is called once nothing more is to be waited for; it may be called from any thread.
    """

    def __init__(self, on_hurry: Callable[[], None]) -> None:
        self._on_hurry = on_hurry
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        self._lost = False
        self.hurry = asyncio.Event()
        """Set once nothing more is to be waited for."""
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._on_signal)

    def _on_signal(self) -> None:
        if self._end.is_set():
            self._on_hurry()
            self.hurry.set()
        self._end.set()

    def lease_lost(self) -> None:
        """Called from the lease's thread."""
        self._lost = True
        self._on_hurry()
        for event in (self.hurry, self._end):
            self._loop.call_soon_threadsafe(event.set)

    async def wait(self) -> None:
        """Return when the worker has to end."""
        await self._end.wait()

    def assert_lease(self) -> None:
        """Make sure that it does not end because its lease is over.

        Raises:
            LostLease: it does.
        """
        if self._lost:
            raise LostLease
