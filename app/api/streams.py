"""The streams that are open in this process: how many per person, and when they must end."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from tenancy.errors import TooManyStreams

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from tenancy.principal import UserId


class OpenStreams:
    """Counts open streams per user, and ends them.

    A user's, when that user may not read on any more; everybody's, when the process shuts down.
    """

    def __init__(self) -> None:
        self._open: Counter[UserId] = Counter()
        self._ends: defaultdict[UserId, set[asyncio.Future[None]]] = defaultdict(set)
        self._is_closed = False

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

    @property
    def readers(self) -> frozenset[UserId]:
        """Whose streams are open."""
        return frozenset(self._ends)

    def end(self, user_id: UserId) -> None:
        """End one user's streams soon: whether they may read on is for a new request to find."""
        for end in self._ends.get(user_id, ()):
            if not end.done():
                end.set_result(None)

    def close(self) -> None:
        """End every stream soon; clients go on reading from another process."""
        self._is_closed = True
        for user_id in self.readers:
            self.end(user_id)

    def closing_for(self, user_id: UserId) -> Callable[[], Awaitable[None]]:
        """What returns, once called, when this user's streams must end."""
        return partial(self._until_closing, user_id)

    async def _until_closing(self, user_id: UserId) -> None:
        if self._is_closed:
            return
        end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        ends = self._ends[user_id]
        ends.add(end)
        try:
            await end
        finally:
            ends.discard(end)
            if not ends:
                self._ends.pop(user_id, None)
