"""Makes sure that what was committed without waiting for the disk is on it; for many at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenancy.database.calls import FunctionCalls

# A transaction that writes: the commit of one that has nothing in the log is not waited for, even
# if it has an id. Everything before it goes to disk with it.
_FLUSH = "SELECT pg_logical_emit_message(true, 'stoa', '')"


class Flush:
    """One flush serves everybody who asked for it before it began."""

    def __init__(self, calls: FunctionCalls) -> None:
        self._calls = calls
        self._one_at_a_time = asyncio.Lock()
        self._asked = 0
        self._flushed = 0

    async def wait(self) -> None:
        """Return once everything that was committed before is on disk.

        Raises:
            DatabaseUnavailable: Postgres is away: what was committed may be lost.
        """
        self._asked += 1
        mine = self._asked
        async with self._one_at_a_time:
            if self._flushed >= mine:
                return
            serves = self._asked
            await self._calls.fetch(_FLUSH)
            self._flushed = serves
