"""Brings what a graph emits to the loop that stores it, in the order in which it was emitted.

A graph emits on the loop, where nothing may wait, and from threads, which wait while too much is
pending. They never wait for a loop that stands still: it may be waiting for them.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from tenancy.errors import StoaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.worker.parts import Part

LOOK_SECONDS = 1.0
"""How long a thread waits before it looks whether the loop still turns, and how long that takes."""


class EventsFlooded(StoaError):
    """Far more is pending than is stored in the same time."""

    code = "events_flooded"
    message = "The assistant reported more at once than can be stored. Try again with less."


class Bounds(Protocol):
    """How much may be pending. All but ``room`` and ``flooded`` may be asked from any thread."""

    def is_full(self, events: int = 0, size: int = 0) -> bool:
        """Whether too much is pending, with so many events and bytes more."""
        ...

    def is_flooded(self, events: int = 0, size: int = 0) -> bool:
        """Whether so much is that nobody can be waited for any more."""
        ...

    def flooded(self) -> None:
        """End the run for that."""
        ...

    async def room(self) -> None:
        """Wait while too much is pending."""
        ...


class Handover:
    """Where parts are put, on any thread, and handed on, on the loop that this is made on.

    Args:
        take: is given each part, on the loop.
        bounds: says how much may be pending.
    """

    def __init__(self, take: Callable[[Part], None], bounds: Bounds) -> None:
        self._take = take
        self._bounds = bounds
        self._loop = asyncio.get_running_loop()
        self._adding = threading.Lock()
        self._parts: deque[tuple[Part, int]] = deque()
        self._size = 0
        self._stands_still = False

    def is_here(self) -> bool:
        """Whether it is the loop that asks."""
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    def put(self, part: Part, size: int) -> None:
        """Hand on a part of so many bytes, that nobody changes any more.

        On the loop it is taken before this returns; a thread waits while too much is pending.

        Raises:
            EventsFlooded: far too much is, and the run ends.
        """
        with self._adding:
            self._parts.append((part, size))
            self._size += size
        if self.is_here():
            self._hand_on()
            return
        with suppress(RuntimeError):  # the loop is closed: nobody is there to take anything
            self._loop.call_soon_threadsafe(self._hand_on_from_threads)
            if self._bounds.is_flooded(len(self._parts), self._size):
                self._loop.call_soon_threadsafe(self._bounds.flooded)
                raise EventsFlooded
            is_full = self._bounds.is_full(len(self._parts), self._size)
            if is_full and not self._stands_still:
                self._wait_for_room()

    def _hand_on_from_threads(self) -> None:
        with suppress(EventsFlooded):  # the run has been told
            self._hand_on()

    def _hand_on(self) -> None:
        self._stands_still = False
        while self._parts:
            with self._adding:
                part, size = self._parts.popleft()
                self._size -= size
            self._take(part)

    def _wait_for_room(self) -> None:
        """Wait as long as the loop turns, and there is somebody who makes room."""
        waiting = asyncio.run_coroutine_threadsafe(self._bounds.room(), self._loop)
        while True:
            try:
                waiting.result(LOOK_SECONDS)
            except TimeoutError:
                if self._turns():
                    continue
                self._stands_still = True
                waiting.cancel()
            except concurrent.futures.CancelledError:  # the worker ends
                pass
            return

    def _turns(self) -> bool:
        """Whether the loop does anything."""
        turned = threading.Event()
        self._loop.call_soon_threadsafe(turned.set)
        return turned.wait(LOOK_SECONDS)
