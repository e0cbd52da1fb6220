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

from tenancy.errors import ServiceUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from starlette.types import Receive, Scope, Send

log = structlog.get_logger(__name__)

BEAT_SECONDS = 5.0


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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send the response."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        pump = asyncio.create_task(self._pump(send))
        others = [
            asyncio.create_task(_disconnected(receive)),
            asyncio.create_task(self._keep_alive(send)),
            asyncio.ensure_future(self._closing()),
        ]
        gone = others[0]
        try:
            await asyncio.wait([pump, *others], return_when=asyncio.FIRST_COMPLETED)
            finished = pump.done()
        finally:
            for task in (pump, *others):
                task.cancel()
            await asyncio.gather(pump, *others, return_exceptions=True)
        if finished:
            finished = _came_to_its_end(pump)
        if not gone.done() or gone.cancelled():
            await self._end(send, finished=finished)
        elif self._when_gone is not None and not finished:
            await self._when_gone()

    async def _end(self, send: Send, *, finished: bool) -> None:
        if finished or not self._whole:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _pump(self, send: Send) -> None:
        async with aclosing(self._source) as source:
            async for piece in source:
                await self._send(send, piece)

    async def _keep_alive(self, send: Send) -> None:
        """Beat in silence; return when the assertion has expired."""
        loop = asyncio.get_running_loop()
        left = (self._expires_at - datetime.now(UTC)).total_seconds()
        expiry = loop.time() + max(left, 0)
        self._last_sent = loop.time()
        while (now := loop.time()) < expiry:
            due = self._last_sent + BEAT_SECONDS
            if due <= now:
                await self._send(send, self._beat)
                continue
            await asyncio.sleep(min(due, expiry) - now)

    async def _send(self, send: Send, piece: bytes) -> None:
        self._last_sent = asyncio.get_running_loop().time()
        await send({"type": "http.response.body", "body": piece, "more_body": True})


def _came_to_its_end(pump: asyncio.Task[None]) -> bool:
    """Whether the source said all it had; without a database it cannot, and clients ask again."""
    try:
        pump.result()
    except ServiceUnavailable as error:
        log.warning("a long response was cut short", code=error.code)
        return False
    return True


async def _disconnected(receive: Receive) -> None:
    """Return when the client has gone: the framework does not tell its handlers."""
    while (await receive())["type"] != "http.disconnect":
        pass
