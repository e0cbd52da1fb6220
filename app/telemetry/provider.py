"""What makes spans and sends them: OpenTelemetry's SDK, imported only where there is a collector.

It is not the provider that libraries would find: what they would say of a call holds its arguments.
"""

from __future__ import annotations

import requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from app.telemetry.ids import wanted_root

MOST_WAITING = 2048
"""Spans that wait to be sent; of more, the oldest go unsent."""
ANSWER_SECONDS = 10.0
"""How long the collector may take with a batch, which is lost after that: nobody waits for it."""
_BATCH = 512
_EVERY_MS = 1000


def make_provider(endpoint: str, process: str) -> TracerProvider:
    """Begin to send spans of a process to an address, from a thread of its own."""
    session = requests.Session()
    session.trust_env = False  # no proxy, and no credentials of a file that is for others
    provider = TracerProvider(
        sampler=ALWAYS_ON,
        resource=Resource({"service.name": f"stoa-{process}"}),
        shutdown_on_exit=False,
        id_generator=_RequestIds(),
    )
    provider.add_span_processor(
        BatchSpanProcessor(
            OTLPSpanExporter(endpoint, timeout=ANSWER_SECONDS, session=session),
            max_queue_size=MOST_WAITING,
            schedule_delay_millis=_EVERY_MS,
            max_export_batch_size=_BATCH,
        )
    )
    return provider


class _RequestIds(RandomIdGenerator):
    """Random ids, but for the spans of requests."""

    def generate_trace_id(self) -> int:
        """One for a span without a parent."""
        root = wanted_root()
        return super().generate_trace_id() if root is None else root.trace_id

    def generate_span_id(self) -> int:
        """One for any span."""
        root = wanted_root()
        return super().generate_span_id() if root is None else root.span_id
