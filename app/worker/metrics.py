"""What this worker's model calls cost: waits, calls, tokens. By models that there are pools for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from prometheus_client import Counter, Histogram

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from app.models.seats import HeldSeat, Seats
    from app.models.usage import Usage
    from tenancy.principal import ClaimedRun
    from tenancy.scheduler.seats import PoolFailure

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
        self._waits.labels(held.model).observe(clock() - asked_at)
        return held

    def settle(
        self, held: HeldSeat, usage: Usage, failure: PoolFailure | None = None
    ) -> asyncio.Future[None]:
        """Give a seat back."""
        self._calls.labels(held.model, held.seat.pool, failure or "ended").inc()
        self._tokens.labels(held.model, "prompt").inc(usage.prompt_tokens)
        self._tokens.labels(held.model, "output").inc(usage.output_tokens)
        return self._seats.settle(held, usage, failure)
