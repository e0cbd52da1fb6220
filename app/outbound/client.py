"""Guarded clients of httpx: for the web, and for what speaks OAuth."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterable, Mapping
from collections.abc import Set as AbstractSet

import httpcore
import httpx

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

SECONDS = 20.0
ANSWER_BYTES = 1024 * 1024
_ERRORS = LibraryErrors(
    connecting=(httpx.ConnectError, httpx.ConnectTimeout),
    late=(httpx.TimeoutException,),
    any=(httpx.HTTPError, httpx.StreamError, httpx.InvalidURL),
)


def guarded_client(
    *,
    https_only: bool = True,
    trusted: AbstractSet[str] = frozenset(),
    headers: Mapping[str, str] | None = None,
    answer_bytes: int = ANSWER_BYTES,
    seconds: float = SECONDS,
    resolve: Resolve = resolve,
    tls: ssl.SSLContext | None = None,
) -> httpx.AsyncClient:
    """A client that asks public servers only, and the origins that the operator trusts.

    It follows no redirect, keeps no cookie, takes nothing from the environment. ``seconds`` are
    for all of an exchange. ``answer_bytes`` are counted after unpacking.

    What it raises: ``UrlRefused`` and ``OutboundError`` (``app.outbound.errors``).
    """
    return httpx.AsyncClient(
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
        timeout=httpx.Timeout(seconds, connect=CONNECT_SECONDS),
    )


def guarded_transport(
    *,
    https_only: bool = True,
    trusted: AbstractSet[str] = frozenset(),
    answer_bytes: int = ANSWER_BYTES,
    seconds: float = SECONDS,
    resolve: Resolve = resolve,
    tls: ssl.SSLContext | None = None,
) -> httpx.AsyncBaseTransport:
    """The same as a transport, for clients that others build (``trust_env=False`` is theirs)."""
    guard = Guard(https_only=https_only, trusted=trusted, resolve=resolve)
    return _Transport(guard, Bounds(answer_bytes, seconds), tls or public_tls())


class _Transport(httpx.AsyncHTTPTransport):
    """httpx's own, with a pool whose connections are checked where they are made."""

    def __init__(self, guard: Guard, bounds: Bounds, tls: ssl.SSLContext) -> None:
        super().__init__(verify=tls, trust_env=False)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls, max_connections=None, network_backend=_Backend(guard)
        )
        self._guard = guard
        self._bounds = bounds

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        exchange = Exchange(self._guard, self._bounds, _ERRORS)
        sent = super().handle_async_request
        response = await exchange.head(str(request.url), lambda: sent(request))
        if response.has_redirect_location and not _is_url(response.headers["location"]):
            await response.aclose()
            raise AnswerBroken
        return httpx.Response(
            response.status_code,
            headers=unpacked_headers(response.headers.raw),
            stream=_Body(exchange, response),
            extensions=response.extensions,
        )


def _is_url(location: str) -> bool:
    """Whether the client can read it, as it does though it does not go there."""
    try:
        httpx.URL(location)
    except httpx.InvalidURL:
        return False
    return True


class _Body(httpx.AsyncByteStream):
    """An answer's body within its bounds."""

    def __init__(self, exchange: Exchange, response: httpx.Response) -> None:
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


class _Backend(httpcore.AsyncNetworkBackend):
    """Makes a connection to an address that was checked, and to no other."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002, ASYNC109 - the guard has its own
        local_address: str | None = None,  # noqa: ARG002 - nobody names one
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        async def dial(address: str, seconds: float) -> httpcore.AsyncNetworkStream:
            return await self._network.connect_tcp(
                address, port, timeout=seconds, socket_options=socket_options
            )

        return await self._guard.connect(
            host, port, dial, (httpcore.ConnectError, httpcore.ConnectTimeout)
        )
