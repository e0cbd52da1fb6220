"""What a server says without being asked, heard no faster than is of use.

Each message costs a little of a loop that everybody's runs share, and each request of a server's
holds a task until it takes our reply. A server that says too much is listened to slowly, so that it
waits and not we; a document that would become millions of objects is not read at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import mcp_types
from mcp.shared.message import SessionMessage

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream

T = TypeVar("T")

MESSAGES_PER_SECOND = 100.0
MOST_AT_ONCE = 5000.0
"""Notifications of one connection that are heard at once, before its pace is that of the above."""
COST_OF_REQUEST = 50.0
LINES_PER_SECOND = 1000.0
MOST_LINES = 20_000.0
"""The same of one stream's lines, which need not be messages."""
MOST_NODES = 100_000
"""Objects and lists in one document or event: each takes far more room than it has letters."""
_PIECE = 1024
_MANY_LINES = 500
"""In one chunk: they are worked off without others' getting a turn."""


class Pace:
    """So much at once, and then no more than so much a second."""

    def __init__(self, per_second: float, at_once: float) -> None:
        self._per_second = per_second
        self._ahead = at_once / per_second
        self._worked_off = 0.0

    async def take(self, cost: float) -> None:
        """Wait until this much more may be heard."""
        if (wait := self.owed(cost)) > 0:
            await asyncio.sleep(wait)

    def owed(self, cost: float) -> float:
        """How many seconds to wait for this much more; none, where that is less than 0."""
        now = asyncio.get_running_loop().time()
        self._worked_off = max(self._worked_off, now) + cost / self._per_second
        return self._worked_off - self._ahead - now


class PacedMessages(Generic[T]):
    """A session's incoming messages. Answers are not held up: each was asked for."""

    def __init__(self, heard: ReadStream[T]) -> None:
        self._heard = heard
        self._pace = Pace(MESSAGES_PER_SECOND, MOST_AT_ONCE)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the stream itself has it
        return getattr(self._heard, name)

    async def __aenter__(self) -> PacedMessages[T]:
        await self._heard.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:  # noqa: ANN401, PYI036 - as the stream
        return await self._heard.__aexit__(*error)

    def __aiter__(self) -> PacedMessages[T]:
        return self

    async def __anext__(self) -> T:
        return await self._in_turn(await self._heard.__anext__())

    async def receive(self) -> T:
        """The next message."""
        return await self._in_turn(await self._heard.receive())

    async def _in_turn(self, item: T) -> T:
        await self._pace.take(_cost(item))
        return item


def _cost(item: object) -> float:
    match item.message if isinstance(item, SessionMessage) else None:
        case mcp_types.JSONRPCResponse() | mcp_types.JSONRPCError():
            return 0.0
        case mcp_types.JSONRPCRequest():
            return COST_OF_REQUEST
        case _:
            return 1.0


class Nodes:
    """Counts the objects and lists of a document as its bytes come."""

    def __init__(self) -> None:
        self._count = 0

    def too_many(self, piece: bytes) -> bool:
        """Whether there are, with this piece of it."""
        self._count += piece.count(b"{") + piece.count(b"[")
        return self._count > MOST_NODES

    def restart(self) -> None:
        """Another document begins."""
        self._count = 0


async def paced_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """A stream's bytes, no faster than their lines may come, and never many lines at once."""
    pace = Pace(LINES_PER_SECOND, MOST_LINES)
    async for chunk in chunks:
        size = len(chunk) if _lines(chunk) <= _MANY_LINES else _PIECE
        for start in range(0, len(chunk), size or 1):
            piece = chunk[start : start + size]
            await pace.take(_lines(piece))
            if size == _PIECE:
                await asyncio.sleep(0)
            yield piece


def _lines(piece: bytes) -> int:
    return piece.count(b"\n") + piece.count(b"\r")
