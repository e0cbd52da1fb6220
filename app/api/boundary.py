"""The outermost layer: request ids, the access log, safe headers, one record for a 500.

Pure ASGI: it wraps streams without buffering them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

import structlog
from starlette.requests import ClientDisconnect

from app.api.connection import is_connection_over
from app.api.context import RequestContext, context_of, put_context, route_template
from app.api.problems import problem_response
from app.api.rate_headers import rate_headers
from app.logging import stack_of, tenant_reference
from app.request_id import taken_or_made, working_for
from app.telemetry.spans import request_span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from app.telemetry.spans import Facts

log = structlog.get_logger(__name__)

CLIENT_GONE = 499
"""What the log says of a request whose client went away before its answer began."""
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_OTHER_METHOD = "_OTHER"
"""For the rest, which anybody may send: each would have its own counters, at every route."""
_OURS = 500
"""From here on, a status says that the fault is ours."""

SAFE_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class Answers(Protocol):
    """Counts what was answered."""

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """A request's answer began, so long after the request."""
        ...


class RequestBoundary:
    """Wraps the application; nothing unexpected gets past it."""

    def __init__(self, app: ASGIApp, answers: Answers | None = None) -> None:
        self._app = app
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        context = RequestContext(taken_or_made(scope["headers"]))
        put_context(scope, context)
        with working_for(context.request_id), request_span(context.request_id) as facts:
            await self._serve(scope, receive, _Answer(scope, send, context), facts)

    async def _serve(self, scope: Scope, receive: Receive, answer: _Answer, facts: Facts) -> None:
        started = time.perf_counter()
        try:
            await self._app(scope, receive, answer.send)
        except ClientDisconnect:
            pass  # somebody read on where nothing will come any more
        except Exception as error:  # noqa: BLE001 - the last place where it can be told
            _record(scope, error, answer)
            if answer.status is None:
                await _internal_error(scope)(scope, receive, answer.send)
        finally:
            self._tell(scope, answer, facts, started)

    def _tell(self, scope: Scope, answer: _Answer, facts: Facts, started: float) -> None:
        """The request's line in the access log; what its span says, and what is counted."""
        ended = time.perf_counter()
        status = answer.told_status
        log.info("request", **_about(scope), **answer.how, ms=round((ended - started) * 1000, 1))
        method, route = _method(scope), route_template(scope)
        facts.name(f"{method} {route}")
        facts.say({"http.request.method": method, "http.route": route})
        facts.say({"http.response.status_code": status, "stoa.tenant": _tenant(scope)})
        if status is None or status >= _OURS:
            facts.fail()
        if status is not None and self._answers is not None:
            began = ended if answer.began is None else answer.began
            self._answers.answered(method, route, status, began - started)


class _Answer:
    """Sends on, adding headers to the start of the response and remembering how it went."""

    def __init__(self, scope: Scope, send: Send, context: RequestContext) -> None:
        self._scope = scope
        self._send = send
        self._context = context
        self._is_whole = False
        self._came_late = False
        self.status: int | None = None
        """What was answered, whoever was still there."""
        self.began: float | None = None

    @property
    def told_status(self) -> int | None:
        """The status for the log: nobody was there for it, unless it is a fault of ours."""
        if self.status is None:
            return CLIENT_GONE if is_connection_over(self._scope) else None
        return CLIENT_GONE if self._came_late and self.status < _OURS else self.status

    @property
    def how(self) -> dict[str, object]:
        """The status; and who cut the answer short, if it had begun and did not end."""
        status = self.told_status
        if self._is_whole or self._came_late or self.status is None:
            return {"status": status}
        by = "client" if is_connection_over(self._scope) else "server"
        return {"status": status, "cut_by": by}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.began = time.perf_counter()
            self._came_late = is_connection_over(self._scope)
            headers = list(message.get("headers", ()))
            given = {name.lower() for name, _ in headers}
            if b"cache-control" not in given:
                headers.append((b"cache-control", b"no-store"))
            headers += [(name, value) for name, value in self._headers() if name not in given]
            message = {**message, "headers": headers}
        elif not message.get("more_body", False):
            self._is_whole = not is_connection_over(self._scope)
        await self._send(message)

    def _headers(self) -> Iterator[tuple[bytes, bytes]]:
        yield from SAFE_HEADERS
        yield b"x-request-id", self._context.request_id.encode()
        if self._context.admission is not None:
            yield from rate_headers(self._context.admission, self._context.refusal)


def _internal_error(scope: Scope) -> ASGIApp:
    return problem_response(scope, 500, "internal", "Something went wrong on our side.")


def _record(scope: Scope, error: Exception, answer: _Answer) -> None:
    """The one record of an unexpected error; where the answer has begun, it breaks off there."""
    log.error(
        "request failed",
        **_about(scope),
        stage="handling" if answer.status is None else "answering",
        error=type(error).__name__,
        stack=stack_of(error),
    )


def _about(scope: Scope) -> dict[str, object]:
    return {
        "method": _method(scope),
        "route": route_template(scope),
        "request_id": context_of(scope).request_id,
        "tenant": _tenant(scope),
    }


def _method(scope: Scope) -> str:
    return scope["method"] if scope["method"] in _METHODS else _OTHER_METHOD


def _tenant(scope: Scope) -> str | None:
    user_id = context_of(scope).user_id
    return None if user_id is None else tenant_reference(user_id)
