"""The four spans: a request, an attempt at a run, a model call, a tool call; and what they say.

Where nobody collects them, each costs a look at a variable.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, Status, StatusCode

from app.telemetry.ids import at_root, root_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager


Fact = Literal[
    "http.request.method",
    "http.response.status_code",
    "http.route",
    "stoa.code",
    "stoa.fence",
    "stoa.graph",
    "stoa.model",
    "stoa.outcome",
    "stoa.output_tokens",
    "stoa.pool",
    "stoa.prompt_tokens",
    "stoa.request_id",
    "stoa.run_id",
    "stoa.server",
    "stoa.tenant",
    "stoa.tool",
]
"""What a span may say: ids, references, names of the operator's, codes and counts."""

_LONGEST = 200
_tracer: trace.Tracer | None = None
_current: ContextVar[Facts | None] = ContextVar("current_span", default=None)


class Facts:
    """What is said of a span while it lasts."""

    def __init__(self, span: trace.Span) -> None:
        self.span = span

    def say(self, facts: dict[Fact, str | int | None]) -> None:
        """Add facts; what is None is not known."""
        for name, value in facts.items():
            if value is not None:
                told = value if isinstance(value, int) else value[:_LONGEST]
                self.span.set_attribute(name, told)

    def name(self, name: str) -> None:
        """Call it otherwise: a request is known by its route once that is found."""
        self.span.update_name(name)

    def fail(self) -> None:
        """Mark it as failed."""
        self.span.set_status(Status(StatusCode.ERROR))


class _Untold(Facts):
    """Of a span that nobody collects."""

    def __init__(self) -> None:
        super().__init__(trace.INVALID_SPAN)

    def say(self, facts: dict[Fact, str | int | None]) -> None:
        """Nothing."""


_UNTOLD = _Untold()


def collect_with(tracer: trace.Tracer | None) -> trace.Tracer | None:
    """Make spans with this from now on, in the whole process; returns what was used before."""
    global _tracer
    before, _tracer = _tracer, tracer
    return before


def current_facts() -> Facts:
    """Of the span that this code works in."""
    return _current.get() or _UNTOLD


def request_span(request_id: str) -> AbstractContextManager[Facts]:
    """The way of one request through a web process."""
    tracer = _tracer
    if tracer is None:
        return nullcontext(_UNTOLD)
    with at_root(root_of(request_id)):
        span = tracer.start_span("request", context=_under(None), kind=SpanKind.SERVER)
    span.set_attribute("stoa.request_id", request_id)
    return _lasting(span)


def attempt_span(request_id: str | None) -> AbstractContextManager[Facts]:
    """One attempt at a run: in the trace of the request that made the run."""
    tracer = _tracer
    if tracer is None:
        return nullcontext(_UNTOLD)
    parent = None if request_id is None else trace.NonRecordingSpan(root_of(request_id))
    span = tracer.start_span("run attempt", context=_under(parent), kind=SpanKind.CONSUMER)
    if request_id is not None:
        span.set_attribute("stoa.request_id", request_id)
    return _lasting(span)


def call_span(
    name: Literal["model call", "tool call"], *routine: type[Exception]
) -> AbstractContextManager[Facts]:
    """A call that a run makes; ``routine`` are exceptions that are no failures of it."""
    tracer = _tracer
    if tracer is None:
        return nullcontext(_UNTOLD)
    parent = _current.get()
    context = _under(None if parent is None else parent.span)
    return _lasting(tracer.start_span(name, context=context, kind=SpanKind.CLIENT), *routine)


@contextmanager
def _lasting(span: trace.Span, *routine: type[Exception]) -> Iterator[Facts]:
    """A span that ends with the block. Of what ends it, no word is kept."""
    facts = Facts(span)
    token = _current.set(facts)
    try:
        yield facts
    except Exception as error:
        if not isinstance(error, routine):
            facts.fail()
        raise
    finally:
        _current.reset(token)
        span.end()


def _under(parent: trace.Span | None) -> Context:
    """A context of ours alone: what libraries know of a current span is not looked at, nor set."""
    return trace.set_span_in_context(parent or trace.INVALID_SPAN, Context())
