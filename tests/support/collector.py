"""A collector of traces: OpenTelemetry's protocol over HTTP, in the test's own process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tests.support import leaks
from tests.support.oauth_server.serving import loopback_socket, served

PATH = "/v1/traces"
_PATIENCE = 60.0


@dataclass(frozen=True)
class CollectedSpan:
    """One span, as it came."""

    process: str
    name: str
    trace: str
    span: str
    parent: str
    failed: bool
    facts: dict[str, Any]


@dataclass
class Collector:
    """What it was sent."""

    url: str
    silent: bool = False
    """Whether it hears everything and answers nothing."""
    spans: list[CollectedSpan] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once somebody has sent it something."""
    _came: asyncio.Condition = field(default_factory=asyncio.Condition)
    _let_go: asyncio.Event = field(default_factory=asyncio.Event)

    async def collected(self, is_it: Callable[[CollectedSpan], bool]) -> CollectedSpan:
        """Return the first such span, once it is there."""
        async with asyncio.timeout(_PATIENCE), self._came:
            while not (found := [each for each in self.spans if is_it(each)]):
                await self._came.wait()
        return found[0]

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take what is sent."""
        assert scope["type"] == "http"  # it has no lifespan
        request = Request(scope, receive)
        body = await request.body()
        self.asked.set()
        if self.silent:
            await self._let_go.wait()
            return
        leaks.search("trace", body.decode("utf-8", errors="replace"), "a process")
        self.spans += _spans(body)
        async with self._came:
            self._came.notify_all()
        await Response(status_code=200 if scope["path"] == PATH else 404)(scope, receive, send)

    def let_go(self) -> None:
        """Let those who wait for an answer go without one."""
        self._let_go.set()


def _spans(body: bytes) -> list[CollectedSpan]:
    sent = ExportTraceServiceRequest.FromString(body)
    return [
        CollectedSpan(
            process=_facts(resource.resource.attributes)["service.name"],
            name=span.name,
            trace=span.trace_id.hex(),
            span=span.span_id.hex(),
            parent=span.parent_span_id.hex(),
            failed=span.status.code == span.status.STATUS_CODE_ERROR,
            facts=_facts(span.attributes),
        )
        for resource in sent.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _facts(attributes: Any) -> dict[str, Any]:
    return {
        each.key: getattr(each.value, each.value.WhichOneof("value") or "string_value")
        for each in attributes
    }


@asynccontextmanager
async def collector(*, silent: bool = False) -> AsyncIterator[Collector]:
    """Run one."""
    listening, origin = loopback_socket()
    running = Collector(origin, silent)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await running.answer(scope, receive, send)

    async with served(app, listening):
        try:
            yield running
        finally:
            running.let_go()
