"""An answer on its way from the model to whoever reads it."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from app.models.errors import ModelCallOutsideRun, ModelStreamCut

if TYPE_CHECKING:
    from app.models.scope import RunScope

MOST_UNREAD = 8 * 1024 * 1024
"""Bytes that are kept for a reader who is slow. The model is not held up by one before that, so a
call keeps its seat for as long as the model speaks."""


class Answer:
    """The lines of one answer. Used on the event loop of its run only.

    The call puts lines in and its reader takes them out, each at their own pace. It ends once:
    whole, with an error, with its run, or because its reader closed it.
    """

    def __init__(self, scope: RunScope) -> None:
        self.scope = scope
        self._lines: deque[bytes] = deque()
        self._unread = 0
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._call: asyncio.Task[None] | None = None
        self._error: BaseException | None = None
        self._has_begun = False
        self._is_whole = False

    @property
    def has_begun(self) -> bool:
        """Whether something of it was passed on: then the call is not made again."""
        return self._has_begun

    async def put(self, line: bytes, *, last: bool = False) -> None:
        """Pass a line on; waits while too much is unread."""
        self._has_begun = True
        self._is_whole = self._is_whole or last
        self._lines.append(line + b"\n")
        self._unread += len(line) + 1
        self._changed.set()
        while self._unread > MOST_UNREAD:
            self._room.clear()
            await self._room.wait()

    def fail(self, error: BaseException) -> None:
        """Have it end with this, after what has come."""
        self._error = self._error or error

    def comes_from(self, call: asyncio.Task[None]) -> None:
        """The call that brings it: it ends no later than that does."""
        self._call = call
        call.add_done_callback(self._call_ended)

    async def begun(self) -> None:
        """Wait for its first line.

        Raises:
            StoaError: there will be none.
        """
        try:
            await self._wait()
        except asyncio.CancelledError:
            await self.aclose()
            raise
        if not self._lines:
            raise self._error or ModelStreamCut()

    async def read(self) -> bytes | None:
        """All lines that came since the last time, at least one; None at the end.

        Raises:
            ModelError: the answer fails, stalls, or ends before it is done.
        """
        await self._wait()
        if not self._lines:
            if self._error is not None:
                raise self._error
            return None
        lines = b"".join(self._lines)
        self._lines.clear()
        self._unread = 0
        self._room.set()
        return lines

    async def aclose(self) -> None:
        """End the call. If the answer is not whole, its connection is closed when this returns."""
        if self._call is None or self._call.done():
            return
        if not self._is_whole:
            self.scope.end(self._call)
            await asyncio.wait({self._call})

    async def _wait(self) -> None:
        while not self._lines and not (self._call is not None and self._call.done()):
            self._changed.clear()
            await self._changed.wait()

    def _call_ended(self, call: asyncio.Task[None]) -> None:
        if call.cancelled():
            self.fail(ModelCallOutsideRun())
        elif (error := call.exception()) is not None:
            self.fail(error)
        self._changed.set()
