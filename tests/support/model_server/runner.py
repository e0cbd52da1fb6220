"""How Ollama shares a model: loaded once, a fixed number of slots, first come first served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Loaded:
    """A model in memory. Another ``num_ctx`` is another one: Ollama loads again."""

    model: str
    num_ctx: object


class Runner:
    """Loads models one at a time and hands out slots in the order of arrival."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.loads = 0
        self.running = 0
        self.waiting = 0
        self.most_running = 0
        self.loaded: Loaded | None = None
        self._free = asyncio.Semaphore(slots)
        self._loading = asyncio.Lock()

    async def load(self, wanted: Loaded, seconds: float) -> float:
        """Have the model in memory; return the seconds it took. One load blocks all others."""
        async with self._loading:
            if self.loaded == wanted:
                return 0
            await asyncio.sleep(seconds)
            self.loaded = wanted
            self.loads += 1
            return seconds

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold one of the slots."""
        self.waiting += 1
        try:
            await self._free.acquire()
        finally:
            self.waiting -= 1
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            yield
        finally:
            self.running -= 1
            self._free.release()
