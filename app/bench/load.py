"""Driving runs at a steady number in flight, and what came of it."""

from __future__ import annotations

import asyncio
import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


@dataclass(frozen=True, slots=True)
class Timing:
    """One run: seconds until its first event, and until it was complete."""

    first_event: float
    completion: float


@dataclass(slots=True)
class Load:
    """What a number of runs took together. Seconds."""

    elapsed: float = 0.0
    timings: list[Timing] = field(default_factory=list)

    @property
    def runs_per_second(self) -> float:
        """Completed runs a second."""
        return len(self.timings) / self.elapsed

    def first_event_ms(self, percent: int) -> float:
        """Percentile of the time until the first event, in milliseconds."""
        return percentile([timing.first_event for timing in self.timings], percent) * 1000

    def completion_ms(self, percent: int) -> float:
        """Percentile of the time until completion, in milliseconds."""
        return percentile([timing.completion for timing in self.timings], percent) * 1000

    def add(self, other: Load) -> None:
        """Add another round's runs."""
        self.elapsed += other.elapsed
        self.timings += other.timings


def percentile(values: list[float], percent: int) -> float:
    """The value below which ``percent`` of the values lie."""
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


async def drive(one: Callable[[int], Awaitable[Timing]], runs: int, in_flight: int) -> Load:
    """Run ``one(index)`` ``runs`` times, always ``in_flight`` at once."""
    waiting = iter(range(runs))
    load = Load()

    async def keep_busy() -> None:
        for index in waiting:
            load.timings.append(await one(index))

    started = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(in_flight):
            group.create_task(keep_busy())
    load.elapsed = time.perf_counter() - started
    return load
