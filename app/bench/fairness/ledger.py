"""What happened to each call, written down where it passes on its way to the model."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.models.seats import HeldSeat, Seats
    from app.models.usage import Usage
    from tenancy.principal import ClaimedRun, UserId
    from tenancy.scheduler.seats import PoolFailure


@dataclass(slots=True)
class Call:
    """Times in seconds of the bench; None where it did not come so far."""

    person: int
    asked: float
    granted: float | None = None
    ended: float | None = None
    cost: float = 0


@dataclass(slots=True)
class Ledger:
    """The calls of one part of the bench."""

    calls: list[Call] = field(default_factory=list)
    began: float = 0
    ended: float = 0
    failures: int = 0
    """Calls that came to nothing though nobody ended them."""
    announced: dict[str, float] = field(default_factory=dict)
    """When other workers began to be told that a call of theirs was given a seat."""
    hints: list[float] = field(default_factory=list)
    """How long that took, in seconds."""
    samples: int = 0
    idle_samples: int = 0
    """Looks into the database, and those that found a free seat and somebody eligible."""

    @property
    def people(self) -> int:
        """How many there were."""
        return 1 + max((call.person for call in self.calls), default=0)

    @property
    def seconds(self) -> float:
        """How long was measured."""
        return self.ended - self.began


class WatchedSeats:
    """Seats, with what they are asked for written down."""

    def __init__(self, seats: Seats, persons: dict[UserId, int], ledger: Ledger) -> None:
        self._seats = seats
        self._persons = persons
        self._ledger = ledger
        self._open: dict[int, Call] = {}

    async def take(self, run: ClaimedRun, model: str) -> HeldSeat:
        """Wait for a seat."""
        clock = asyncio.get_running_loop().time
        call = Call(self._persons[run.user_id], clock())
        self._ledger.calls.append(call)
        held = await self._seats.take(run, model)
        call.granted = clock()
        self._open[id(held)] = call
        return held

    def settle(
        self, held: HeldSeat, usage: Usage, failure: PoolFailure | None = None
    ) -> asyncio.Future[None]:
        """Give a seat back."""
        call = self._open.pop(id(held))
        call.ended = asyncio.get_running_loop().time()
        call.cost = usage.prompt_tokens + 2.0 * usage.output_tokens
        return self._seats.settle(held, usage, failure)
