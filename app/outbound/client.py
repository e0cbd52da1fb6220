"""Guarded clients: for the web, for what speaks OAuth and MCP. All are httpx2's, as theirs are."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterable, Mapping
from collections.abc import Set as AbstractSet

import httpcore2
import httpx2
from httpcore2._types import SOCKET_OPTION

from app.outbound.bodies import Bounds
from app.outbound.errors import AnswerBroken
from app.outbound.exchange import Exchange, no_cookies, public_tls, unpacked_headers
from app.outbound.guard import CONNECT_SECONDS, Guard
from app.outbound.resolving import Resolve, resolve

SECONDS = 20.0
ANSWER_BYTES = 1024 * 1024


def guarded_client(
    *,
    https_only: bool = True,
    trusted: AbstractSet[str] = frozenset(),
    headers: Mapping[str, str] | None = None,
    answer_bytes: int = ANSWER_BYTES,
    seconds: float = SECONDS,
    resolve: Resolve = resolve,
    tls: ssl.SSLContext | None = None,
) -> httpx2.AsyncClient:
    """A client that asks public servers only, and the origins that the operator trusts.

    It follows no redirect, keeps no cookie, takes nothing from the environment. ``seconds`` are
    for all of an exchange. ``answer_bytes`` are counted after unpacking.

    What it raises: ``UrlRefused`` and ``OutboundError`` (``app.outbound.errors``).
    """
    return httpx2.AsyncClient(
        transport=guarded_transport(
            https_only=https_only,
            trusted=trusted,
            answer_bytes=answer_bytes,
            seconds=seconds,
            resolve=resolve,
            tls=tls,
        ),
        headers={"Accept-Encoding": "gzip", **(headers or {})},
        cookies=no_cookies(),
        follow_redirects=False,
        trust_env=False,
        timeout=httpx2.Timeout(seconds, connect=CONNECT_SECONDS),
    )


def guarded_transport(
    *,
    https_only: bool = True,
    trusted: AbstractSet[str] = frozenset(),
    answer_bytes: int = ANSWER_BYTES,
    seconds: float | None = SECONDS,
    resolve: Resolve = resolve,
    tls: ssl.SSLContext | None = None,
) -> httpx2.AsyncBaseTransport:
    """The same as a transport, for clients that others build (``trust_env=False`` is theirs)."""
    guard = Guard(https_only=https_only, trusted=trusted, resolve=resolve)
    return GuardedTransport(guard, Bounds(answer_bytes, seconds), tls or public_tls())


class GuardedTransport(httpx2.AsyncHTTPTransport):
    """httpx2's own, with a pool whose connections are checked where they are made."""

    def __init__(self, guard: Guard, bounds: Bounds, tls: ssl.SSLContext) -> None:
        super().__init__(verify=tls, trust_env=False)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls, max_connections=None, network_backend=_Backend(guard)
        )
        self._guard = guard
        self._bounds = bounds

    def bounds_of(self, request: httpx2.Request) -> Bounds:  # noqa: ARG002 - one for all
        """What the answer to a request may cost."""
        return self._bounds

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Ask, and hand on what is answered within the bounds."""
        exchange = Exchange(self._guard, self.bounds_of(request))
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
