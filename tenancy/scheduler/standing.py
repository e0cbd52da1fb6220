"""Where a person's runs and calls stand among everybody's. Under the dispatch role.

The only door through which a web process learns anything of others, and all it learns are numbers
about the person who asks: it names nobody. Only the API uses it (a contract in ``pyproject.toml``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenancy.database.calls import FunctionCalls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenancy.database.engine import DatabaseSettings
    from tenancy.principal import UserId

MOST_PLACES = 10
"""How many places of a person's are told, of runs and of each model's calls."""
MOST_OTHERS = 1000
"""How many other people are looked at for a place: those who are served first."""

_PLACES = (
    "SELECT dispatch.run_places($1, $2, $3, $5) AS runs,"
    " dispatch.call_places($1, $4, $5) AS calls, dispatch.seats_in_use() AS in_use"
)
_CALL_SECONDS = "SELECT dispatch.call_seconds()"


@dataclass(frozen=True, slots=True)
class Places:
    """Places in the queues, 1 for whoever is next, and how much of the models is in use."""

    runs: tuple[int, ...]
    """Of the person's first runs that could begin now."""
    calls: Mapping[str, int]
    """Of their calls that wait for a seat, by id."""
    in_use: Mapping[str, int]
    """Seats, by model, of anybody."""


class StandingDatabase:
    """Tells people their places."""

    def __init__(self, settings: DatabaseSettings) -> None:
        self._calls = FunctionCalls(settings)

    async def places(self, user_id: UserId, model: str, runs: int, calls: int) -> Places:
        """The places of a person's first ``runs`` runs and ``calls`` calls.

        They hold if everybody's turn comes in order of their use of ``model``, then round by round.
        No more than ``MOST_PLACES`` of each are told.

        Raises:
            DatabaseUnavailable: Postgres cannot be reached.
        """
        most = (min(runs, MOST_PLACES), min(calls, MOST_PLACES), MOST_OTHERS)
        (row,) = await self._calls.fetch(_PLACES, user_id, model, *most)
        return Places(tuple(row["runs"]), row["calls"], row["in_use"])

    async def call_seconds(self) -> Mapping[str, float]:
        """How long calls have lately kept their seat, on average over everybody's; by model.

        Raises:
            DatabaseUnavailable: Postgres cannot be reached.
        """
        (row,) = await self._calls.fetch(_CALL_SECONDS)
        seconds: Mapping[str, float] = row[0]
        return seconds

    async def close(self) -> None:
        """Close every connection."""
        await self._calls.close()
