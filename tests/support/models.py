"""Model calls without a scheduler: for tests of what happens on the wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import uuid4

from app.models.access import ModelAccess
from app.models.scope import RunScope
from app.models.seats import HeldSeat
from app.models.settings import ModelTiming
from app.models.usage import Usage
from tenancy.principal import ClaimedRun, UserId
from tenancy.scheduler.seats import PoolFailure, Seat

QUICK = ModelTiming(retry_seconds=0.01)
END_SECONDS = 30.0


@dataclass
class FreeSeats:
    """As many seats at one server as anybody asks for; remembers how they were given back."""

    url: str
    context: int = 2048
    output: int = 64
    taken: int = 0
    busy: int = 0
    """How many are taken and not given back."""
    settled: list[tuple[Usage, PoolFailure | None]] = field(default_factory=list)
    _given_back: asyncio.Event = field(default_factory=asyncio.Event)

    async def take(self, run: ClaimedRun, model: str) -> HeldSeat:
        self.taken += 1
        self.busy += 1
        seat = Seat("default", self.url, self.context, self.output)
        return HeldSeat(run, uuid4(), model, seat)

    def settle(
        self, held: HeldSeat, usage: Usage, failure: PoolFailure | None = None
    ) -> asyncio.Future[None]:
        self.busy -= 1
        self._given_back.set()
        self.settled.append((usage, failure))
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    async def all_back(self) -> list[Usage]:
        """Wait until no seat is taken; what each call used."""
        while self.busy:
            self._given_back.clear()
            await self._given_back.wait()
        return [usage for usage, _ in self.settled]


@asynccontextmanager
async def model_calls(seats: FreeSeats, timing: ModelTiming = QUICK) -> AsyncIterator[RunScope]:
    """Make the model calls within those of a run."""
    access = ModelAccess(seats, timing)
    scope = RunScope(ClaimedRun(UserId(uuid4()), uuid4(), 1), access)
    try:
        with scope.entered():
            yield scope
    finally:
        scope.close()
        await scope.ended(END_SECONDS)
        await access.aclose()
