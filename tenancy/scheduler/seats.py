"""Seats: the right to have one model call in flight. Under the dispatch role.

Virtual token counters (Sheng et al., *Fairness in Serving Large Language Models*, OSDI 2024),
dispatched as start-time fair queueing with depth; ``tenancy/sql/seats.sql`` is the policy. Each
method is one function call, in its own transaction and one round trip.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from tenancy.database.calls import FunctionCalls
from tenancy.database.flush import Flush

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from tenancy.database.engine import DatabaseSettings
    from tenancy.principal import ClaimedRun, UserId

_TAKE = "SELECT * FROM dispatch.take_seat($1, $2, $3, $4, $5, $6, $7)"
_TAKE_UP = "SELECT * FROM dispatch.take_up($1, $2, $3)"
_SETTLE = "SELECT * FROM dispatch.settle_call($1, $2, $3, $4, $5, $6)"
_SERVE = "SELECT dispatch.serve_model($1)"
_TEND = "SELECT dispatch.tend_seats($1, $2)"

TAKE_UP_SECONDS = 2.0
"""How long a call has to take up a seat that it was given, before the next one gets it."""

Outcome = Literal[
    "taken", "waiting", "out", "gone", "no_model", "tokens_per_day", "tokens_per_month"
]
PoolFailure = Literal["unreachable", "model_missing", "failed"]
"""What a call may say about its pool: the first two take it out at once, ``failed`` the third
time in a row."""


@dataclass(frozen=True, slots=True)
class Seat:
    """A seat that a call has: where to go with it, and what is fixed there."""

    pool: str
    url: str
    context: int
    """Tokens of the model's window, the same in each request: another number loads it anew."""
    output: int
    """Most tokens of one answer."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of asking for a seat."""

    outcome: Outcome
    seat: Seat | None = None
    """With ``taken``."""
    reason: PoolFailure | None = None
    """With ``out``: why no pool works."""
    resets_at: datetime | None = None
    """With a budget that is used up: when it begins anew."""
    granted: tuple[UUID, ...] = ()
    """Other calls that were given a seat meanwhile: whoever waits for them is to be told."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of settling a call."""

    first: bool
    """False when it was settled before, or its seat had been given up for lost."""
    granted: tuple[UUID, ...]
    """Calls that were given a seat by it."""
    others: tuple[str, ...]
    """Models on the same server that may have waited for its room: serve them."""


class SeatDatabase:
    """Asks for seats and gives them back."""

    def __init__(self, settings: DatabaseSettings) -> None:
        self._calls = FunctionCalls(settings)
        self._flush = Flush(self._calls)

    async def take(
        self,
        run: ClaimedRun,
        call_id: UUID,
        worker_id: UUID,
        model: str,
        defaults: Mapping[str, object],
    ) -> Asked:
        """Ask for a seat for one call of a run that this worker holds.

        Asking again for the same call changes nothing but takes up a seat that it was given.

        Raises:
            LeaseLost: the run is not this worker's any more.
            UserUnavailable: the user is suspended or being erased.
            DatabaseUnavailable: Postgres is away; whether a seat is held is not known.
        """
        (row,) = await self._calls.fetch(
            _TAKE,
            run.user_id,
            call_id,
            run.run_id,
            run.fence,
            worker_id,
            model,
            dict(defaults),
        )
        seat = _seat(row) if row["outcome"] == "taken" else None
        return Asked(row["outcome"], seat, row["reason"], row["resets_at"], tuple(row["granted"]))

    async def take_up(
        self, user_id: UserId, call_id: UUID, defaults: Mapping[str, object] | None = None
    ) -> Asked:
        """Take up the seat that a call was given; says where it stands if it was given none.

        Where a token budget of the user's was used up meanwhile, the call is to be settled. Without
        ``defaults`` that is not looked at.
        """
        given = None if defaults is None else dict(defaults)
        (row,) = await self._calls.fetch(_TAKE_UP, user_id, call_id, given)
        seat = _seat(row) if row["outcome"] == "taken" else None
        return Asked(row["outcome"], seat, row["reason"], row["resets_at"])

    async def settle(
        self,
        user_id: UserId,
        call_id: UUID,
        model: str,
        prompt_tokens: int,
        output_tokens: int,
        failure: PoolFailure | None = None,
    ) -> Settled:
        """End a call, however far it came: charge it, once, and give its seat to the next.

        One that still waits leaves the queue. It is committed, but may be lost if Postgres crashes:
        follow it with ``flush``, and settle again if that fails.

        Raises:
            DatabaseUnavailable: Postgres is away. Try again: nothing is charged twice.
        """
        (row,) = await self._calls.fetch(
            _SETTLE, user_id, call_id, model, prompt_tokens, output_tokens, failure
        )
        return Settled(row["settled"], tuple(row["granted"]), tuple(row["others"]))

    async def flush(self) -> None:
        """Return once what was settled before is on disk.

        Raises:
            DatabaseUnavailable: Postgres is away: settle again, nothing is charged twice.
        """
        await self._flush.wait()

    async def serve(self, model: str) -> tuple[UUID, ...]:
        """Give out what seats of a model are free; returns the calls that were given one."""
        (row,) = await self._calls.fetch(_SERVE, model)
        return tuple(row[0])

    async def tend(
        self, cooldown_seconds: float, take_up_seconds: float = TAKE_UP_SECONDS
    ) -> tuple[UUID, ...]:
        """Free what was not taken up or whose worker has died; returns who was given a seat.

        Any number of workers may do it at any time.
        """
        (row,) = await self._calls.fetch(_TEND, cooldown_seconds, take_up_seconds)
        return tuple(row[0])

    async def close(self) -> None:
        """Close every connection."""
        await self._calls.close()


def _seat(row: Mapping[str, object]) -> Seat:
    return Seat(
        pool=str(row["pool"]),
        url=str(row["url"]),
        context=int(str(row["context"])),
        output=int(str(row["output"])),
    )
