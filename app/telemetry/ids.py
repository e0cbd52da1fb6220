"""Trace and span ids, worked out of the id of a request, so that processes need not tell them.

A run's row holds the request's id; whoever carries the run out knows the trace by it.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from opentelemetry.trace import SpanContext, TraceFlags

if TYPE_CHECKING:
    from collections.abc import Iterator

_TRACE_ID = re.compile(r"[0-9a-f]{32}")
_root: ContextVar[SpanContext | None] = ContextVar("root_span", default=None)


def root_of(request_id: str) -> SpanContext:
    """Where the span of a request stands. One that was made here is its trace's id itself."""
    digest = hashlib.blake2b(request_id.encode(), digest_size=24, person=b"stoa-trace").digest()
    is_trace_id = _TRACE_ID.fullmatch(request_id) and int(request_id, 16)
    return SpanContext(
        trace_id=int(request_id, 16) if is_trace_id else int.from_bytes(digest[:16]) or 1,
        span_id=int.from_bytes(digest[16:]) or 1,
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )


def wanted_root() -> SpanContext | None:
    """The ids that the span that is begun here is to have; None: any."""
    return _root.get()


@contextmanager
def at_root(root: SpanContext) -> Iterator[None]:
    """Give the span that is begun in the block these ids."""
    token = _root.set(root)
    try:
        yield
    finally:
        _root.reset(token)
