"""Responses that last: sent piece by piece while something happens elsewhere.

Such a response ends when its source does, when the client has gone, when the caller's assertion
has expired, or when the process shuts down; whichever comes first, and at once. In silence it
sends a beat, so that nobody between takes the connection for dead.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog
from starlette.responses import Response

from app.api.connection import abort_connection
from app.api.disconnect import disconnected
from app.logging import facts_of
from tenancy.errors import ServiceUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from starlette.types import Receive, Scope, Send

log = structlog.get_logger(__name__)

BEAT_SECONDS = 5.0
PART_BYTES = 64 * 1024
END_SECONDS = 2.0
"""How long a client may take to take the end of a response that is cut short."""


class LiveResponse(Response):
    """Sends what a source yields.

    Args:
        source: the pieces; closed when the response ends.
        beat: what is sent in silence.
        expires_at: when the caller's assertion ends, and the response with it.
        closing: returns when the process shuts down.
        whole: an incomplete body has no meaning: rather break the connection than end it early.
        when_gone: what is done when the client went away before the source was at its end.
    """

    def __init__(
        self,
        source: AsyncGenerator[bytes, None],
        *,
        media_type: str,
        beat: bytes,
        expires_at: datetime,
        closing: Callable[[], Awaitable[None]],
        whole: bool = False,
        when_gone: Callable[[], Awaitable[None]] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(None, 200, dict(headers or {}), media_type)
        del self.headers["content-length"]
        self._source = source
        self._beat = beat
        self._expires_at = expires_at
        self._closing = closing
        self._whole = whole
        self._when_gone = when_gone
        self._last_sent = 0.0
        self._sending = asyncio.Lock()
        self._in_piece = False
        self._has_started = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        pump = asyncio.create_task(self._pump(send))
        gone = asyncio.create_task(disconnected(receive))
        # Whatever the client reads. A timer: a task of its own would cost each stream a kilobyte.
        expired: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        left = (self._expires_at - datetime.now(UTC)).total_seconds()
        expiry = asyncio.get_running_loop().call_later(max(left, 0), expired.set_result, None)
        others: list[asyncio.Future[None]] = [
            gone,
            asyncio.create_task(self._keep_alive(send)),
            expired,
            asyncio.ensure_future(self._closing()),
        ]
        try:
            await asyncio.wait([pump, *others], return_when=asyncio.FIRST_COMPLETED)
            finished = pump.done()
        finally:
            expiry.cancel()
            for task in (pump, *others):
                task.cancel()
            await asyncio.gather(pump, *others, return_exceptions=True)
        if finished and _came_to_its_end(pump):
            return
        if not gone.done() or gone.cancelled():
            await self._end_early(scope, send)
        elif self._when_gone is not None:
            await self._when_gone()

    async def _pump(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        self._has_started = True
        async with aclosing(self._source) as source:
            async for piece in source:
                await self._send(send, piece)
        await self._send(send, b"", more=False)

    async def _end_early(self, scope: Scope, send: Send) -> None:
        """End the body if that makes sense and the client takes it; else break the connection.

        It makes none in the middle of a piece: half an event is not to be taken for a whole one.
        Nobody is waited for: a client that does not read would never take the end.
        """
        if self._has_started and not self._whole and not self._in_piece:
            try:
                async with asyncio.timeout(END_SECONDS):
                    await self._send(send, b"", more=False)
            except TimeoutError:
                pass
            else:
                return
        abort_connection(scope)

    async def _keep_alive(self, send: Send) -> None:
        """Beat in silence. A piece that its client has not taken yet is no silence."""
        clock = asyncio.get_running_loop().time
        self._last_sent = clock()
        while True:
            await asyncio.sleep(self._last_sent + BEAT_SECONDS - clock())
            if clock() < self._last_sent + BEAT_SECONDS:
                continue
            if self._sending.locked() or not self._has_started:
                self._last_sent = clock()
            else:
                await self._send(send, self._beat)

    async def _send(self, send: Send, piece: bytes, *, more: bool = True) -> None:
        """Send a piece in parts, each once the ones before it are on their way.

        The server keeps what it is given: of a large piece that its client does not take, as
        little as possible.
        """
        async with self._sending:
            self._last_sent = asyncio.get_running_loop().time()
            self._in_piece = True
            for start in range(0, max(len(piece), 1), PART_BYTES):
                part = piece[start : start + PART_BYTES]
                is_last = start + PART_BYTES >= len(piece)
                body = {"body": part, "more_body": more or not is_last}
                await send({"type": "http.response.body", **body})
            self._in_piece = False


def _came_to_its_end(pump: asyncio.Task[None]) -> bool:
    """Whether the source said all it had; without a database it cannot, and clients ask again."""
    try:
        pump.result()
    except ServiceUnavailable as error:
        log.warning("a long response was cut short", **facts_of(error))
        return False
    return True
