"""Guarded clients for MCP's streamable HTTP: one origin, its streams at a pace."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Set as AbstractSet
from typing import Protocol

import httpx2

from app.outbound.bodies import Bounds
from app.outbound.client import GuardedTransport
from app.outbound.exchange import no_cookies, public_tls
from app.outbound.guard import CONNECT_SECONDS, Guard
from app.outbound.resolving import Resolve, resolve

ANSWER_BYTES = 8 * 1024 * 1024
CLOSING = Bounds(64 * 1024, seconds=5.0)
"""Of the request that ends a session: a server must not keep us by never answering it."""
MOST_GETS = 10
GETS_SECONDS = 10.0
"""So many streams are opened in this time. A server says when to come back: it might say at once,
and end each stream as soon as it is open."""
_TIMEOUT = httpx2.Timeout(30.0, connect=CONNECT_SECONDS, read=300.0)


class McpClientFactory(Protocol):
    """What ``StreamableHttpTransport(httpx_client_factory=…)`` calls."""

    def __call__(
        self,
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
        **_others: object,
    ) -> httpx2.AsyncClient:
        """Make a client with these headers."""
        ...


def guarded_mcp_client_factory(
    url: str,
    *,
    trusted: AbstractSet[str] = frozenset(),
    answer_bytes: int = ANSWER_BYTES,
    resolve: Resolve = resolve,
    tls: ssl.SSLContext | None = None,
) -> McpClientFactory:
    """What makes clients for one MCP server: they ask its origin and nothing else.

    The server is public and speaks https, unless its origin is in ``trusted``: that is for servers
    that the operator named (``trusted=frozenset({str(Origin.of(url))})``), never for a user's own.
    A redirect is followed by MCP's transport within the origin only, and refused here otherwise, so
    that credentials go nowhere else. A call's time is its caller's to bound, and an event's size
    the transport's (``max_sse_event_size``); any other answer is bounded here.

    Raises:
        UrlRefused: by its look this is no URL to be asked.
    """
    guard = Guard(trusted=trusted, only=url, resolve=resolve)
    guard.check(url)
    bounds = Bounds(answer_bytes, seconds=None, is_stream_free=True)

    def factory(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
        **_others: object,  # whether to follow redirects, say: no
    ) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            transport=_PacedTransport(guard, bounds, tls or public_tls()),
            headers={"Accept-Encoding": "identity", **(headers or {})},
            auth=auth,
            cookies=no_cookies(),
            follow_redirects=False,
            trust_env=False,
            timeout=timeout or _TIMEOUT,
        )

    return factory


class _PacedTransport(GuardedTransport):
    """One connection's: opens streams no faster than is of any use."""

    def __init__(self, guard: Guard, bounds: Bounds, tls: ssl.SSLContext) -> None:
        super().__init__(guard, bounds, tls)
        self._gets = deque[float](maxlen=MOST_GETS)

    def bounds_of(self, request: httpx2.Request) -> Bounds:
        """Less for the request that ends a session."""
        return CLOSING if request.method == "DELETE" else super().bounds_of(request)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            await self._pace()
        return await super().handle_async_request(request)

    async def _pace(self) -> None:
        """Wait until one more stream may be opened."""
        now = asyncio.get_running_loop().time()
        is_full = len(self._gets) == self._gets.maxlen
        due = max(now, self._gets[0] + GETS_SECONDS) if is_full else now
        self._gets.append(due)
        await asyncio.sleep(due - now)
