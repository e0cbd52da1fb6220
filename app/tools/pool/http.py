"""HTTP to tool servers: no redirects, bounded answers, nothing of the environment."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Protocol

import httpx2

from app.tools.pool.pacing import Nodes, paced_lines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

MAX_ANSWER_BYTES = 16 * 1024 * 1024
"""Longest answer that is one JSON document, and longest event of a stream."""
CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 630.0
"""How long a stream may say nothing; what a call may take is bounded by itself."""
MAX_STREAMS = 100

_FAILED = 400
_EVENTS = "text/event-stream"
_EVENT_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")


class ClientFactory(Protocol):
    """Makes the HTTP client of one connection: its headers go with every request."""

    def __call__(
        self,
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        """A client that is closed by whoever asked for it."""


OwnClients = Callable[[str], ClientFactory]
"""Makes, for the address of a server that a user added, what makes its clients."""


def operators_client(
    headers: dict[str, str] | None = None,
    timeout: httpx2.Timeout | None = None,
    auth: httpx2.Auth | None = None,
) -> httpx2.AsyncClient:
    """A client for an address that the operator wrote into the catalogue."""
    return httpx2.AsyncClient(
        headers=headers,
        auth=auth,
        timeout=timeout or httpx2.Timeout(CONNECT_SECONDS, read=SILENCE_SECONDS),
        limits=httpx2.Limits(max_connections=MAX_STREAMS, max_keepalive_connections=4),
        trust_env=False,
        verify=_tls(),
    )


@cache
def _tls() -> ssl.SSLContext:
    """The authorities that clients know by themselves. One for all: to make it costs 20 ms."""
    return httpx2.create_ssl_context(trust_env=False)


class Answers:
    """What one connection's requests are answered with: looked at, and bounded."""

    def __init__(
        self, failed: Callable[[httpx2.Response], None], too_long: Callable[[], None]
    ) -> None:
        """``failed`` is told of what stands for no answer, ``too_long`` of what is cut."""
        self._failed = failed
        self._too_long = too_long

    def client(self, make: ClientFactory, headers: Mapping[str, str]) -> httpx2.AsyncClient:
        """A client that follows no redirect, and reads no more than it may."""
        timeout = httpx2.Timeout(CONNECT_SECONDS, read=SILENCE_SECONDS)
        client = make(headers=dict(headers), timeout=timeout)
        client.headers["Accept-Encoding"] = "identity"
        client.follow_redirects = False
        # What the protocol's library follows by itself, it follows so many times.
        client.max_redirects = 0
        client.event_hooks.setdefault("response", []).append(self._look)
        return client

    async def _look(self, response: httpx2.Response) -> None:
        if response.status_code >= _FAILED and not _is_an_answer(response):
            self._failed(response)
        # Nobody asked for it to be packed, and what it unpacks to is not bounded.
        if "content-encoding" in response.headers:
            del response.headers["content-encoding"]
        if response.headers.get("content-type", "").lower().startswith(_EVENTS):
            response.stream = _Events(response.stream, self._too_long)
        else:
            response.stream = _Bounded(response.stream, self._too_long)


def _is_an_answer(response: httpx2.Response) -> bool:
    """Whether the server has answered, with an error of the protocol's: those come as a 400."""
    kind = response.headers.get("content-type", "").lower()
    return response.status_code == _FAILED and kind.startswith("application/json")


class AnswerTooLong(httpx2.StreamError):
    """A server says more than is read."""

    def __init__(self) -> None:
        super().__init__("the answer is too long")


class _Bounded(httpx2.AsyncByteStream):
    """A body that fails once it is longer, or more of a tangle, than it may be."""

    def __init__(self, body: object, too_long: Callable[[], None]) -> None:
        self._body = body
        self._too_long = too_long

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_ANSWER_BYTES
        nodes = Nodes()
        async for chunk in self._body:  # type: ignore[attr-defined]
            left -= len(chunk)
            if left < 0 or nodes.too_many(chunk):
                self._too_long()
                raise AnswerTooLong
            yield chunk

    async def aclose(self) -> None:
        await self._body.aclose()  # type: ignore[attr-defined]


class _Events(httpx2.AsyncByteStream):
    """A stream of events that is read at its pace; how long each is, its reader bounds."""

    def __init__(self, body: object, too_long: Callable[[], None]) -> None:
        self._body = body
        self._too_long = too_long

    async def __aiter__(self) -> AsyncIterator[bytes]:
        nodes = Nodes()
        async for piece in paced_lines(self._body):  # type: ignore[arg-type]
            if any(end in piece for end in _EVENT_ENDS):
                nodes.restart()
            if nodes.too_many(piece):
                self._too_long()
                raise AnswerTooLong
            yield piece

    async def aclose(self) -> None:
        await self._body.aclose()  # type: ignore[attr-defined]
