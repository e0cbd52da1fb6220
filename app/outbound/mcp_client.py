"""Guarded clients of httpx2, which is what MCP's streamable HTTP speaks through."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Iterable
from collections.abc import Set as AbstractSet
from typing import Protocol

import httpcore2
import httpx2
from httpcore2._types import SOCKET_OPTION

from app.outbound.bodies import Bounds
from app.outbound.errors import AnswerBroken
from app.outbound.exchange import (
    Exchange,
    LibraryErrors,
    no_cookies,
    public_tls,
    unpacked_headers,
)
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
_ERRORS = LibraryErrors(
    connecting=(httpx2.ConnectError, httpx2.ConnectTimeout),
    late=(httpx2.TimeoutException,),
    any=(httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL),
)


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


def guarded_httpx2_transport(
    *,
    trusted: AbstractSet[str] = frozenset(),
    answer_bytes: int = ANSWER_BYTES,
    seconds: float | None = None,
    resolve: Resolve = resolve,
    tls: ssl.SSLContext | None = None,
) -> httpx2.AsyncBaseTransport:
    """A transport to any public server, for clients that others build: what speaks OAuth.

    Whoever builds the client says ``trust_env=False``. ``seconds`` are for all of an exchange.
    """
    guard = Guard(trusted=trusted, resolve=resolve)
    return _Transport(guard, Bounds(answer_bytes, seconds), tls or public_tls())


class _Transport(httpx2.AsyncHTTPTransport):
    """httpx2's own, with a pool whose connections are checked where they are made."""

    def __init__(self, guard: Guard, bounds: Bounds, tls: ssl.SSLContext) -> None:
        super().__init__(verify=tls, trust_env=False)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls, max_connections=None, network_backend=_Backend(guard)
        )
        self._guard = guard
        self._bounds = bounds

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        bounds = CLOSING if request.method == "DELETE" else self._bounds
        exchange = Exchange(self._guard, bounds, _ERRORS)
        sent = super().handle_async_request
        response = await exchange.head(str(request.url), lambda: sent(request))
        if response.has_redirect_location and not _is_url(response.headers["location"]):
            await response.aclose()
            raise AnswerBroken
        return httpx2.Response(
            response.status_code,
            headers=unpacked_headers(response.headers.raw),
            stream=_Body(exchange, response),
            extensions=response.extensions,
        )


class _PacedTransport(_Transport):
    """One connection's: opens streams no faster than is of any use."""

    def __init__(self, guard: Guard, bounds: Bounds, tls: ssl.SSLContext) -> None:
        super().__init__(guard, bounds, tls)
        self._gets = deque[float](maxlen=MOST_GETS)

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


def _is_url(location: str) -> bool:
    """Whether the client can read it, as it does though it does not go there."""
    try:
        httpx2.URL(location)
    except httpx2.InvalidURL:
        return False
    return True


class _Body(httpx2.AsyncByteStream):
    """An answer's body within its bounds."""

    def __init__(self, exchange: Exchange, response: httpx2.Response) -> None:
        self._exchange = exchange
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = self._response.aiter_raw()
        async for piece in self._exchange.body(
            pieces, self._response.headers, is_success=self._response.is_success
        ):
            yield piece

    async def aclose(self) -> None:
        await self._response.aclose()


class _Backend(httpcore2.AsyncNetworkBackend):
    """Makes a connection to an address that was checked, and to no other."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._network = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002, ASYNC109 - the guard has its own
        local_address: str | None = None,  # noqa: ARG002 - nobody names one
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        async def dial(address: str, seconds: float) -> httpcore2.AsyncNetworkStream:
            return await self._network.connect_tcp(
                address, port, timeout=seconds, socket_options=socket_options
            )

        return await self._guard.connect(
            host, port, dial, (httpcore2.ConnectError, httpcore2.ConnectTimeout)
        )
