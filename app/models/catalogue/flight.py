"""A value that is looked up again now and then, by one look-up for all who want it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Generic, TypeVar

import structlog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

log = structlog.get_logger(__name__)

T = TypeVar("T")

FIRST_PAUSE_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 600.0


class Refreshed(Generic[T]):
    """Keeps the newest value that could be had; a failure never takes away a good one.

    Args:
        name: what is kept, for the log.
        load: looks it up. Whatever it raises, or if it is cancelled, the next may try.
        fresh_seconds: how old a value may be before reading it begins a look-up.
        value: what is known already.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        name: str,
        load: Callable[[], Awaitable[T]],
        fresh_seconds: float,
        value: T | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._load = load
        self._fresh_seconds = fresh_seconds
        self._value = value
        self._clock = clock
        self._flight: asyncio.Task[T] | None = None
        self._due_at = float("-inf")
        self._failures = 0
        self._is_closed = False

    def read(self) -> T | None:
        """What is known, at once; an old value begins a look-up that nobody waits for.

        After failures that is begun later and later.
        """
        is_idle = self._flight is None and not self._is_closed
        if is_idle and self._clock() >= self._due_at:
            self._begin()
        return self._value

    async def refresh(self) -> T:
        """Look it up now: together with whoever does already. Who is cancelled leaves the others.

        Raises:
            Exception: what the look-up raised, to everybody who waits for it.
            asyncio.CancelledError: it was closed.
        """
        if self._is_closed:
            raise asyncio.CancelledError
        return await asyncio.shield(self._flight or self._begin())

    async def aclose(self) -> None:
        """End a look-up that is under way, and begin none any more."""
        self._is_closed = True
        if self._flight is not None:
            self._flight.cancel()
            await asyncio.gather(self._flight, return_exceptions=True)

    def _begin(self) -> asyncio.Task[T]:
        flight = asyncio.create_task(self._look_up(), name=f"refresh {self._name}")
        self._flight = flight
        flight.add_done_callback(self._landed)
        return flight

    async def _look_up(self) -> T:
        value = await self._load()
        self._value = value
        return value

    def _landed(self, flight: asyncio.Task[T]) -> None:
        self._flight = None
        if not flight.cancelled() and flight.exception() is None:
            self._failures = 0
            self._due_at = self._clock() + self._fresh_seconds
            return
        self._failures += 1
        pause = FIRST_PAUSE_SECONDS * 2 ** min(self._failures - 1, 10)
        self._due_at = self._clock() + min(pause, LONGEST_PAUSE_SECONDS)
        error = None if flight.cancelled() else flight.exception()
        log.warning(
            "a catalogue could not be refreshed",
            catalogue=self._name,
            error=type(error).__name__ if error is not None else "CancelledError",
        )
