"""Spans: known by the request's id, cheap where nobody collects them, closed to libraries."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from uuid import uuid4

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from app.telemetry.export import endpoint_of
from app.telemetry.ids import root_of
from app.telemetry.provider import _RequestIds
from app.telemetry.spans import (
    attempt_span,
    call_span,
    collect_with,
    current_facts,
    request_span,
)

SAID = "what somebody said in confidence"


class Kept(SpanExporter):
    """Keeps the spans that ended."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.spans.extend(spans)
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        pass


@pytest.fixture
def kept() -> Iterator[list[ReadableSpan]]:
    exporter = Kept()
    provider = TracerProvider(shutdown_on_exit=False, id_generator=_RequestIds())
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    before = collect_with(provider.get_tracer("test"))
    yield exporter.spans
    collect_with(before)


def trace_of(span: ReadableSpan) -> str:
    assert span.context is not None
    return format(span.context.trace_id, "032x")


class TestATrace:
    def test_of_a_request_bears_its_id(self, kept: list[ReadableSpan]) -> None:
        request_id = uuid4().hex
        with request_span(request_id):
            pass
        (span,) = kept
        assert trace_of(span) == request_id

    @pytest.mark.parametrize("request_id", ["chosen-by.a_client", "0" * 32, "A" * 32])
    def test_of_a_request_with_another_id_is_worked_out_of_it(
        self, request_id: str, kept: list[ReadableSpan]
    ) -> None:
        with request_span(request_id):
            pass
        (span,) = kept
        assert trace_of(span) == format(root_of(request_id).trace_id, "032x") != request_id
        assert root_of(request_id).is_valid

    async def test_goes_on_in_another_process_and_in_tasks(self, kept: list[ReadableSpan]) -> None:
        async def call() -> None:
            with call_span("model call"):
                pass

        request_id = uuid4().hex
        with request_span(request_id):
            pass
        with attempt_span(request_id):
            await asyncio.create_task(call())
        request, model, attempt = kept
        assert attempt.parent is not None
        assert request.context is not None
        assert attempt.parent.span_id == request.context.span_id
        assert model.parent == attempt.context
        assert {trace_of(span) for span in kept} == {request_id}

    def test_of_a_run_without_a_request_is_its_own(self, kept: list[ReadableSpan]) -> None:
        with attempt_span(None):
            pass
        (span,) = kept
        assert span.parent is None

    def test_is_not_what_libraries_find(self, kept: list[ReadableSpan]) -> None:
        with request_span(uuid4().hex):
            assert not trace.get_current_span().get_span_context().is_valid
            with trace.get_tracer("library").start_as_current_span("call") as theirs:
                theirs.set_attribute("arguments", SAID)
        assert [span.name for span in kept] == ["request"]


class TestASpan:
    def test_that_fails_says_so_without_a_word(self, kept: list[ReadableSpan]) -> None:
        with pytest.raises(RuntimeError), call_span("tool call"):
            raise RuntimeError(SAID)
        (span,) = kept
        assert not span.status.is_ok
        assert not span.events
        assert SAID not in span.to_json()

    def test_that_ends_as_it_may_has_not_failed(self, kept: list[ReadableSpan]) -> None:
        with pytest.raises(KeyError), call_span("tool call", LookupError):
            raise KeyError(SAID)
        assert kept[0].status.status_code is trace.StatusCode.UNSET

    def test_says_what_is_known_and_no_more_than_fits(self, kept: list[ReadableSpan]) -> None:
        with call_span("model call") as facts:
            facts.say({"stoa.model": "x" * 1000, "stoa.code": None})
            current_facts().say({"stoa.prompt_tokens": 3})
        assert dict(kept[0].attributes or {}) == {"stoa.model": "x" * 200, "stoa.prompt_tokens": 3}

    def test_that_nobody_collects_says_nothing(self) -> None:
        with request_span(uuid4().hex) as facts, call_span("model call"):
            facts.say({"stoa.code": "x"})
            current_facts().fail()
        assert not trace.get_current_span().get_span_context().is_valid


@pytest.mark.parametrize(
    "url", ["http://collector:4318", "http://collector:4318/", "http://collector:4318/v1/traces"]
)
def test_spans_are_posted_to_the_collectors_traces(url: str) -> None:
    assert endpoint_of(url) == "http://collector:4318/v1/traces"
