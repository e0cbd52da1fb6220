"""Carry one request to the service and its answer back, holding nothing on the way."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any

import h11
import httpx

from app.dev.gateway.headers import to_client
from app.dev.gateway.problems import problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import Message, Receive, Scope, Send

    from app.dev.gateway.headers import Headers

# No time-out for answers: a stream may be silent for as long as the service likes.
_TIMEOUTS = {"connect": 5.0, "read": None, "write": 60.0, "pool": None}
# Shorter than the service keeps idle connections, so that we don't write to one it is closing.
_IDLE_SECONDS = 2.0
_KEYS_SECONDS = 2.0
_LARGEST_KEYS = 64 * 1024
_BODY_HEADERS = frozenset({b"content-length", b"transfer-encoding"})

logger = logging.getLogger(__name__)


class ClientDisconnected(Exception):
    """The client went away before it had sent all of its request."""


class RequestBody:
    """The client's body as it arrives; afterwards, word of when the client leaves."""

    def __init__(self, receive: Receive, *, expected: bool) -> None:
        self._receive = receive
        self._read = asyncio.Event()
        self.expected = expected
        if not expected:
            self._read.set()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield what the client sends.

        Raises:
            ClientDisconnected: it left in mid-body.
        """
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnected
            more = message.get("more_body", False)
            if not more:
                self._read.set()
            if message.get("body"):
                yield message["body"]

    async def client_left(self) -> None:
        """Wait until the client is gone. Only one may read at a time, so the body is first."""
        await self._read.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass


class Upstream:
    """The service behind the gateway."""

    def __init__(self, url: str) -> None:
        self._url = httpx.URL(url)
        self._transport = httpx.AsyncHTTPTransport(
            trust_env=False,
            limits=httpx.Limits(
                max_connections=None, max_keepalive_connections=20, keepalive_expiry=_IDLE_SECONDS
            ),
        )

    async def aclose(self) -> None:
        """Close every connection to the service."""
        await self._transport.aclose()

    async def keys(self, path: str) -> list[Any]:
        """The keys that the service publishes (a JWKS); none while it cannot be asked."""
        request = httpx.Request("GET", self._url.join(path), extensions={"timeout": _TIMEOUTS})
        content = b""
        try:
            async with asyncio.timeout(_KEYS_SECONDS):
                response = await self._transport.handle_async_request(request)
                try:
                    async for chunk in response.aiter_raw():
                        content += chunk
                        if len(content) > _LARGEST_KEYS:
                            return []
                finally:
                    await response.aclose()
            keys = json.loads(content)["keys"]
        except (
            httpx.TransportError,
            TimeoutError,
            ValueError,
            LookupError,
            TypeError,
            RecursionError,
        ):
            return []
        return keys if isinstance(keys, list) else []

    async def forward(self, scope: Scope, receive: Receive, send: Send, headers: Headers) -> None:
        """Answer a request with the service's answer, until one of the two goes away.

        Whichever ends first takes the other with it: when the client leaves, the connection to
        the service is closed at once, which is how the service learns of it.
        """
        names = {name for name, _ in scope["headers"]}
        body = RequestBody(receive, expected=bool(names & _BODY_HEADERS))
        exchange = _Exchange(self._transport, self._request(scope, headers, body), send)
        carry = asyncio.create_task(exchange.carry(scope, receive))
        watch = asyncio.create_task(body.client_left())
        try:
            await asyncio.wait({carry, watch}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            carry.cancel()
            watch.cancel()
            await asyncio.wait({carry, watch})
        for task in (carry, watch):
            if not task.cancelled():
                task.result()

    def _request(self, scope: Scope, headers: Headers, body: RequestBody) -> httpx.Request:
        target: bytes = scope["raw_path"]
        if scope["query_string"]:
            target += b"?" + scope["query_string"]
        return httpx.Request(
            scope["method"],
            self._url,
            headers=headers,
            content=aiter(body) if body.expected else None,
            # The path as the client wrote it: quoting it again would change what it names.
            extensions={"target": target, "timeout": _TIMEOUTS},
        )


class _Exchange:
    """One request on its way to the service, and the answer on its way back."""

    def __init__(
        self, transport: httpx.AsyncHTTPTransport, request: httpx.Request, send: Send
    ) -> None:
        self._transport = transport
        self._request = request
        self._send = send

    async def carry(self, scope: Scope, receive: Receive) -> None:
        """Send the request, and pass the answer on as it arrives."""
        try:
            response = await self._transport.handle_async_request(self._request)
        except ClientDisconnected:
            return
        except (httpx.LocalProtocolError, h11.LocalProtocolError):
            # The second, which httpx lets through: the body is not as long as was said.
            refusal = problem(400, "malformed_request", "The request is malformed.")
            await refusal(scope, receive, self._send)
            return
        except httpx.TransportError as error:
            logger.warning("The service cannot be reached: %s", type(error).__name__)
            refusal = problem(502, "upstream_unavailable", "The service cannot be reached.")
            await refusal(scope, receive, self._send)
            return
        try:
            await self._pass_on(response)
        finally:
            await response.aclose()

    async def _pass_on(self, response: httpx.Response) -> None:
        status = response.status_code
        headers = to_client(response.headers.raw, status)
        start: Message = {"type": "http.response.start", "status": status, "headers": headers}
        await self._send(start)
        try:
            async for chunk in response.aiter_raw():
                await self._send({"type": "http.response.body", "body": chunk, "more_body": True})
        except httpx.TransportError as error:
            # Nothing can be said any more. To leave the answer unfinished closes the
            # connection, so that the client sees a broken answer and not a short one.
            logger.warning("The service broke off its answer: %s", type(error).__name__)
            return
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})
