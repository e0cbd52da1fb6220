"""Sending spans to the operator's collector (OTLP over HTTP), beside everything else.

A bounded queue and a thread of its own: a collector that is slow, away or silent costs spans, and
nothing else waits for it.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Literal

import structlog

from app.telemetry.spans import collect_with

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from opentelemetry.sdk.trace import TracerProvider

    from app.settings import Settings

log = structlog.get_logger(__name__)

PATH = "/v1/traces"
END_SECONDS = 3.0
"""How long what is left may take to be sent at the end of a process."""


@asynccontextmanager
async def exporting_spans(
    settings: Settings, process: Literal["web", "worker"]
) -> AsyncIterator[None]:
    """Make and send spans while the block lasts, if there is a collector to send them to."""
    if settings.otlp_url is None:
        yield
        return
    provider = await asyncio.to_thread(_provider, endpoint_of(str(settings.otlp_url)), process)
    before = collect_with(provider.get_tracer("stoa"))
    try:
        yield
    finally:
        collect_with(before)
        await _end(provider)


def endpoint_of(url: str) -> str:
    """Where spans are posted to, at a collector whose address may say so or not."""
    base = url.rstrip("/")
    return base if base.endswith(PATH) else base + PATH


def _provider(endpoint: str, process: str) -> TracerProvider:
    # In a thread: importing the SDK takes a while.
    from app.telemetry.provider import make_provider  # noqa: PLC0415

    return make_provider(endpoint, process)


async def _end(provider: TracerProvider) -> None:
    """Send what is left, if that can be done soon. The thread ends with the process."""
    over = asyncio.Event()
    loop = asyncio.get_running_loop()

    def shut_down() -> None:
        provider.shutdown()
        with suppress(RuntimeError):  # the loop is closed: it was too late
            loop.call_soon_threadsafe(over.set)

    threading.Thread(target=shut_down, name="end of tracing", daemon=True).start()
    try:
        async with asyncio.timeout(END_SECONDS):
            await over.wait()
    except TimeoutError:
        log.warning("spans left unsent", seconds=END_SECONDS)
