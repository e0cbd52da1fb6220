"""Sees that a graph ends once its run is to stop, or has used up its time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from app import faults
from app.runs.events import Event
from app.runs.wire import to_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.stopping import RunStop

STOP_SECONDS = 3.0
"""How long a graph that stops by itself may take, beyond the calls that it must finish."""
_CUTS = 3
"""How often a graph is cancelled before it is left to itself."""
_QUIET_LOOKS = 2
"""A call that has just ended is yet to be stored."""


class StopFollower:
    """Follows one attempt's stop.

    Args:
        stop: what the attempt is stopped by.
        seconds_left: how long the run may go on.
        emit: takes the event that tells of the stop.
    """

    def __init__(self, stop: RunStop, seconds_left: float, emit: Callable[[Event], None]) -> None:
        self._stop = stop
        self._seconds_left = max(seconds_left, 0)
        self._emit = emit
        self.timed_out = False
        """Whether it is the time that ended the run."""

    async def follow(self, graph: asyncio.Task[None]) -> None:
        """Wait for the stop; then cut the graph off unless it ends by itself.

        Returns when it takes no notice of that: whoever waits for it need not wait any longer.
        """
        try:
            async with asyncio.timeout(self._seconds_left):
                await self._stop.cancelled.wait()
        except TimeoutError:
            self.timed_out = True
            self._stop.cancel()
        else:
            faults.reach("cancel.followed")
            self._emit(Event("stopping", to_json({"tools": list(self._stop.finishing)})))
        if self._stop.heeded:
            await self._wait_for_calls()
        for _ in range(_CUTS):
            graph.cancel()
            await asyncio.sleep(STOP_SECONDS)  # a graph may have taken it for something else

    async def _wait_for_calls(self) -> None:
        """Return once no call that must be finished was under way for a while."""
        quiet = 0
        while quiet < _QUIET_LOOKS:
            await asyncio.sleep(STOP_SECONDS)
            quiet = 0 if self._stop.finishing else quiet + 1
