"""One person's requests take turns, so that many of them cannot hold up everybody else's."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tenancy.errors import TooManyRequests

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tenancy.principal import UserId

AT_ONCE = 4
"""Requests of one person that are worked on at once: fewer than a process has connections."""
MOST_WAITING = 100


@dataclass(slots=True)
class _Line:
    free: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    present: int = 0


class RequestTurns:
    """Lets each person have a few requests worked on at once; the next wait in line."""

    def __init__(self) -> None:
        self._lines: dict[UserId, _Line] = {}

    @asynccontextmanager
    async def turn(self, user_id: UserId) -> AsyncIterator[None]:
        """Wait for one of the user's turns, and hold it.

        Raises:
            TooManyRequests: too many of the user's requests wait already.
        """
        line = self._lines.setdefault(user_id, _Line())
        if line.present >= AT_ONCE + MOST_WAITING:
            raise TooManyRequests
        line.present += 1
        try:
            async with line.free:
                yield
        finally:
            line.present -= 1
            if not line.present:
                del self._lines[user_id]
