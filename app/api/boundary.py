"""The outermost layer: request ids, the access log, safe headers, one record for a 500.

Pure ASGI: it wraps streams without buffering them.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING
from uuid import uuid4

import structlog

from app.api.context import RequestContext, context_of, put_context, route_template
from app.api.problems import problem_response
from app.api.rate_headers import rate_headers
from app.logging import stack_of, tenant_reference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = structlog.get_logger(__name__)

_SANE_ID = re.compile(rb"[A-Za-z0-9._-]{8,64}")

SAFE_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class RequestBoundary:
    """Wraps the application; nothing unexpected gets past it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        context = RequestContext(_request_id(scope))
        put_context(scope, context)
        response = _Response(send, context)
        started = time.perf_counter()
        try:
            await self._app(scope, receive, response.send)
        except Exception as error:  # noqa: BLE001 - the last place where it can be told
            _record(scope, error)
            if response.status is None:
                await _internal_error(scope)(scope, receive, response.send)
        finally:
            _access(scope, response.status, time.perf_counter() - started)


class _Response:
    """Sends on, adding headers to the start of the response and remembering its status."""

    def __init__(self, send: Send, context: RequestContext) -> None:
        self._send = send
        self._context = context
        self.status: int | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message.get("headers", ()))
            given = {name.lower() for name, _ in headers}
            if b"cache-control" not in given:
                headers.append((b"cache-control", b"no-store"))
            headers += [(name, value) for name, value in self._headers() if name not in given]
            message = {**message, "headers": headers}
        await self._send(message)

    def _headers(self) -> Iterator[tuple[bytes, bytes]]:
        yield from SAFE_HEADERS
        yield b"x-request-id", self._context.request_id.encode()
        if self._context.admission is not None:
            yield from rate_headers(self._context.admission, self._context.refusal)


def _request_id(scope: Scope) -> str:
    given = [value for name, value in scope["headers"] if name == b"x-request-id"]
    if len(given) == 1 and _SANE_ID.fullmatch(given[0]):
        return str(given[0].decode())
    return uuid4().hex


def _internal_error(scope: Scope) -> ASGIApp:
    return problem_response(scope, 500, "internal", "Something went wrong on our side.")


def _record(scope: Scope, error: Exception) -> None:
    """The one record of an unexpected error."""
    log.error(
        "request failed",
        **_about(scope),
        error=type(error).__name__,
        stack=stack_of(error),
    )


def _access(scope: Scope, status: int | None, seconds: float) -> None:
    log.info("request", **_about(scope), status=status, ms=round(seconds * 1000, 1))


def _about(scope: Scope) -> dict[str, object]:
    context = context_of(scope)
    return {
        "method": scope["method"],
        "route": route_template(scope),
        "request_id": context.request_id,
        "tenant": tenant_reference(context.user_id) if context.user_id else None,
    }
