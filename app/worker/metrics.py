"""What this worker's calls come to: of models that there are pools for, and of tool servers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge, Histogram

if TYPE_CHECKING:
    from uuid import UUID

    from prometheus_client import CollectorRegistry

    from app.models.seats import HeldSeat, Seats
    from app.models.usage import Usage
    from tenancy.principal import ClaimedRun
    from tenancy.scheduler.seats import PoolFailure

_CALLS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_WAITS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)


class MeasuredSeats:
    """Seats from another place, with what becomes of them counted."""

    def __init__(self, seats: Seats, registry: CollectorRegistry) -> None:
        self._seats = seats
        self._waits = Histogram(
            "stoa_seat_wait_seconds",
            "How long model calls waited for the seats that they were given.",
            ("model",),
            buckets=_WAITS,
            registry=registry,
        )
        self._seconds = Histogram(
            "stoa_model_call_duration_seconds",
            "How long model calls had their seats.",
            ("model", "outcome"),
            buckets=_CALLS,
            registry=registry,
        )
        self._began: dict[UUID, float] = {}
        self._calls = Counter(
            "stoa_model_calls",
            "Model calls that gave their seat back; a failure is the pool's.",
            ("model", "pool", "outcome"),
            registry=registry,
        )
        self._tokens = Counter(
            "stoa_model_tokens",
            "Tokens of model calls, as they were charged.",
            ("model", "kind"),
            registry=registry,
        )

    async def take(self, run: ClaimedRun, model: str) -> HeldSeat:
        """Wait for a seat."""
        clock = asyncio.get_running_loop().time
        asked_at = clock()
        held = await self._seats.take(run, model)
        self._began[held.call_id] = clock()
        self._waits.labels(held.model).observe(self._began[held.call_id] - asked_at)
        return held

    def settle(
        self, held: HeldSeat, usage: Usage, failure: PoolFailure | None = None
    ) -> asyncio.Future[None]:
        """Give a seat back."""
        now = asyncio.get_running_loop().time()
        took = now - self._began.pop(held.call_id, now)
        self._seconds.labels(held.model, failure or "ended").observe(took)
        self._calls.labels(held.model, held.seat.pool, failure or "ended").inc()
        self._tokens.labels(held.model, "prompt").inc(usage.prompt_tokens)
        self._tokens.labels(held.model, "output").inc(usage.output_tokens)
        return self._seats.settle(held, usage, failure)


class MeasuredAttempts:
    """Counts what attempts at runs came to, by the codes that their people are told."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._ended = Counter(
            "stoa_run_attempts",
            "Attempts at runs that came to an outcome; `pending`: others go on with the run.",
            ("outcome", "code"),
            registry=registry,
        )

    def ended(self, outcome: str, code: str | None) -> None:
        """One more."""
        self._ended.labels(outcome, code or "").inc()


class MeasuredTools:
    """Counts connections to tool servers, and calls of their tools.

    By the names that the operator gave them; all that people added are ``own``.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._open = Gauge(
            "stoa_tool_connections",
            "Connections to tool servers, those that are being opened or closed included.",
            ("server",),
            registry=registry,
        )
        self._lost = Counter(
            "stoa_tool_connections_lost",
            "Connections that could not be opened, or that their server ended.",
            ("server", "reason"),
            registry=registry,
        )
        self._refused = Counter(
            "stoa_tool_connections_refused",
            "Connections that nobody tried to open: the server rests, or there is no room.",
            ("server", "reason"),
            registry=registry,
        )
        self._calls = Histogram(
            "stoa_tool_call_seconds",
            "How long calls of servers' tools took.",
            ("server", "outcome"),
            buckets=_CALLS,
            registry=registry,
        )
        self._reads = Histogram(
            "stoa_tool_read_seconds",
            "How long it took to read servers' resources and prompts.",
            ("server", "outcome"),
            buckets=_CALLS,
            registry=registry,
        )

    def opened(self, server: str) -> None:
        """One more."""
        self._open.labels(server).inc()

    def closed(self, server: str) -> None:
        """One less."""
        self._open.labels(server).dec()

    def lost(self, server: str, reason: str) -> None:
        """It failed."""
        self._lost.labels(server, reason).inc()

    def refused(self, server: str, reason: str) -> None:
        """It was not tried."""
        self._refused.labels(server, reason).inc()

    def called(self, server: str, outcome: str, seconds: float) -> None:
        """A call has ended."""
        self._calls.labels(server, outcome).observe(seconds)

    def read(self, server: str, outcome: str, seconds: float) -> None:
        """A resource or a prompt was read, or could not be."""
        self._reads.labels(server, outcome).observe(seconds)
