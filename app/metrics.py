"""Metrics for Prometheus, on a port of their own: numbers by model and pool, nobody's words or ids.

What the scheduler's are, the database says, to every process alike; it is asked when somebody
scrapes, at most once a second. Off unless a port is set.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import structlog
from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from app.databases import dispatch_settings
from app.logging import facts_of, record_failure
from app.settings import Settings, SettingsError
from tenancy.errors import StoaError
from tenancy.scheduler.facts import SchedulerFacts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

log = structlog.get_logger(__name__)

FRESH_SECONDS = 1.0
_ANSWER_SECONDS = 10.0
_BY_MODEL = {
    "stoa_model_seats": ("capacity", "Seats of all pools with the model that are open."),
    "stoa_model_seats_in_use": ("in_use", "Seats of the model that are in use or cool down."),
    "stoa_model_calls_waiting": ("waiting_calls", "Model calls that wait for a seat."),
    "stoa_model_users_waiting": ("waiting_users", "People whose calls wait for a seat."),
    "stoa_model_call_seconds": ("call_seconds", "How long calls take of late."),
    "stoa_model_vtime_spread_tokens": (
        "vtime_spread",
        "Between those who are next and last in line for a seat.",
    ),
}
_BY_POOL = {
    "stoa_pool_seats": ("capacity", "Calls that the pool takes at once."),
    "stoa_pool_seats_in_use": ("in_use", "Calls in flight."),
    "stoa_pool_seats_cooling": ("cooling", "Seats of dead workers that cannot be used yet."),
}
_BY_KIND = {
    "stoa_questions_open": ("open", "What is asked of people and not decided."),
    "stoa_questions_oldest_seconds": ("oldest_seconds", "How long the oldest of it has waited."),
}
_OF_ERASURES = {
    "stoa_erasures_open": ("open", "People who leave, and are not erased yet."),
    "stoa_erasures_failing": ("failing", "Those of them whose last step failed."),
    "stoa_erasures_oldest_seconds": ("oldest_seconds", "How long ago the first of them left."),
}


class RecentFacts:
    """What the database says, not older than a second. None while it says nothing."""

    def __init__(self, facts: SchedulerFacts, clock: Callable[[], float] = time.monotonic) -> None:
        self._facts = facts
        self._clock = clock
        self._lock = asyncio.Lock()
        self._read_at = float("-inf")
        self._found: dict[str, Any] | None = None

    async def read(self) -> dict[str, Any] | None:
        """The newest, by one question however many ask."""
        async with self._lock:
            if self._clock() - self._read_at >= FRESH_SECONDS:
                self._found = await self._ask()
                self._read_at = self._clock()
            return self._found

    async def _ask(self) -> dict[str, Any] | None:
        try:
            return await self._facts.read()
        except StoaError as error:
            log.warning("metrics have no facts", **facts_of(error))
            return None


class SchedulerCollector(Collector):
    """Asks the process's event loop for facts, from the thread that answers a scrape."""

    def __init__(self, recent: RecentFacts, loop: asyncio.AbstractEventLoop) -> None:
        self._recent = recent
        self._loop = loop

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The scheduler's metrics."""
        asked = asyncio.run_coroutine_threadsafe(self._recent.read(), self._loop)
        try:
            facts = asked.result(_ANSWER_SECONDS)
        except TimeoutError:
            asked.cancel()
            facts = None
        except Exception as error:  # noqa: BLE001 - or the answering thread prints it
            record_failure("metrics", error)
            facts = None
        yield GaugeMetricFamily(
            "stoa_database_up", "Whether the database answers.", value=float(facts is not None)
        )
        if facts is not None:
            yield from scheduler_metrics(facts)


def scheduler_metrics(facts: Mapping[str, Any]) -> Iterator[GaugeMetricFamily]:
    """The facts as metrics."""
    yield _labelled("stoa_runs", "Runs that have not ended.", "state", facts["runs"])
    yield _labelled(
        "stoa_oldest_wait_seconds",
        "How long the run, or call, that waits longest has waited.",
        "waits_for",
        facts["oldest_wait_seconds"],
    )
    yield GaugeMetricFamily(
        "stoa_users_waiting",
        "People who have a run, or a call, that waits.",
        value=facts["users_waiting"],
    )
    yield _each(
        "stoa_component_available",
        "1 where a part of the service that everybody shares can do all its work.",
        ("component",),
        facts["components"],
        "available",
    )
    for name, (key, meaning) in _BY_KIND.items():
        yield _each(name, meaning, ("kind",), facts["questions"], key)
    for name, (key, meaning) in _OF_ERASURES.items():
        yield GaugeMetricFamily(name, meaning, value=facts["erasures"][key])
    for name, (key, meaning) in _BY_MODEL.items():
        yield _each(name, meaning, ("model",), facts["models"], key)
    for name, (key, meaning) in _BY_POOL.items():
        yield _each(name, meaning, ("pool", "model"), facts["pools"], key)
    state = GaugeMetricFamily(
        "stoa_pool_state", "1 for the state that the pool is in.", labels=("pool", "model", "state")
    )
    for pool in facts["pools"]:
        for each in ("open", "failing", "removed"):
            state.add_metric((pool["pool"], pool["model"], each), float(pool["state"] == each))
    yield state


@asynccontextmanager
async def serving_metrics(
    settings: Settings, port: int | None, setting: str
) -> AsyncIterator[CollectorRegistry]:
    """Serve metrics while the block lasts, if a port is set; gives what more can be put into them.

    Raises:
        SettingsError: the port is taken; the message names the setting.
    """
    registry = CollectorRegistry()
    if port is None:
        yield registry
        return
    facts = SchedulerFacts(replace(dispatch_settings(settings), pool_size=1))
    ProcessCollector(registry=registry)
    registry.register(SchedulerCollector(RecentFacts(facts), asyncio.get_running_loop()))
    host = settings.metrics_host
    try:
        # In a thread: naming the host may ask a name server.
        server, thread = await asyncio.to_thread(start_http_server, port, host, registry)
    except OSError as error:
        raise SettingsError(
            f"{setting}: cannot listen on {host}:{port}: {error.strerror}"
        ) from error
    server.handle_error = _broken_off  # type: ignore[method-assign, assignment]
    log.info("serving metrics", port=port)
    try:
        yield registry
    finally:
        await asyncio.to_thread(server.shutdown)
        server.server_close()
        thread.join()
        await facts.close()


def _broken_off(_request: object, _address: object) -> None:
    """What ends a scrape: mostly who asked for it has gone. Python's server would print it."""
    error = sys.exception()
    if error is not None and not isinstance(error, ConnectionError):
        record_failure("metrics", error)


def _labelled(
    name: str, meaning: str, label: str, values: Mapping[str, float]
) -> GaugeMetricFamily:
    metric = GaugeMetricFamily(name, meaning, labels=(label,))
    for each, value in values.items():
        metric.add_metric((each,), value)
    return metric


def _each(
    name: str, meaning: str, labels: tuple[str, ...], rows: list[dict[str, Any]], key: str
) -> GaugeMetricFamily:
    metric = GaugeMetricFamily(name, meaning, labels=labels)
    for row in rows:
        if row[key] is not None:
            metric.add_metric([row[label] for label in labels], row[key])
    return metric
