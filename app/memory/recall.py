"""What is remembered, put before the model at the beginning of a turn."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from app.memory.search import MemorySearch

MOST_RECALLED = 10
"""Memories in one prompt: beyond the best few, they are about something else."""
_CHARACTERS_PER_TOKEN = 4
_TOKENS_OF_A_LINE = 3


class TurnRecall:
    """Recalls for one run: once for what was said, however often its model is called."""

    def __init__(self, search: MemorySearch) -> None:
        self._search = search
        self._said: str | None = None
        self._recalled: list[str] = []
        self._lock = asyncio.Lock()

    async def recall(self, said: str, tokens: int) -> Sequence[str]:
        """The memories that matter to what was said, best first, within so many tokens.

        Each is one line.

        Raises:
            LeaseLost: the run is another worker's.
            DatabaseUnavailable: Postgres stayed away.
        """
        async with self._lock:
            if said != self._said:
                best = await self._search.find(said, MOST_RECALLED)
                self._said, self._recalled = said, [each.memory.content for each in best]
        return fitting(self._recalled, tokens)


def fitting(memories: Iterable[str], tokens: int) -> list[str]:
    """As many as fit, best first; one that is too long makes room for those after it. Pure.

    A line break in one would let it pass for something else than a part of a list.
    """
    chosen: list[str] = []
    for memory in memories:
        line = " ".join(memory.split())
        cost = -(-len(line) // _CHARACTERS_PER_TOKEN) + _TOKENS_OF_A_LINE
        if cost <= tokens:
            tokens -= cost
            chosen.append(line)
    return chosen
