"""The streams that are open in this process: how many per person, and when they must end."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tenancy.errors import TooManyStreams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenancy.principal import UserId


class OpenStreams:
    """Counts open streams per user, and ends all of them when the process shuts down."""

    def __init__(self) -> None:
        self._open: Counter[UserId] = Counter()
        self._closing = asyncio.Event()

    @contextmanager
    def held(self, user_id: UserId, most: int) -> Iterator[None]:
        """Hold one of the user's streams open, of at most so many.

        Raises:
            TooManyStreams: the user has as many as one person may.
        """
        if self._open[user_id] >= most:
            raise TooManyStreams("streams")
        self._open[user_id] += 1
        try:
            yield
        finally:
            self._open[user_id] -= 1
            if not self._open[user_id]:
                del self._open[user_id]

    def count(self, user_id: UserId | None = None) -> int:
        """How many streams are open, of one user or of all."""
        return self._open.total() if user_id is None else self._open[user_id]

    def close(self) -> None:
        """End every stream soon; clients go on reading from another process."""
        self._closing.set()

    async def closing(self) -> None:
        """Return once streams must end."""
        await self._closing.wait()
