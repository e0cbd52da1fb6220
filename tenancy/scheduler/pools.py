"""The pools: a model on a model server, with its seats. Under the dispatch role."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from tenancy.database.calls import FunctionCalls

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from tenancy.database.engine import DatabaseSettings

_DECLARE = "SELECT dispatch.declare_pools($1)"
_PROBE = "SELECT pool, url, model, is_failing FROM dispatch.pools_to_probe($1, $2)"
_REOPEN = "SELECT dispatch.reopen_pool($1)"


@dataclass(frozen=True, slots=True)
class PoolDeclaration:
    """A pool as the settings have it."""

    pool: str
    server: str
    url: str
    server_capacity: int | None
    """Model calls that the server runs at once, of all its models; None: as its pools say."""
    model: str
    """By its full name, with the tag."""
    capacity: int
    context: int
    output: int


@dataclass(frozen=True, slots=True)
class PoolToProbe:
    """A pool that is to be looked at."""

    pool: str
    url: str
    model: str
    is_failing: bool
    """Whether it was taken out."""


class PoolDatabase:
    """Declares pools, and puts those back that work again."""

    def __init__(self, settings: DatabaseSettings) -> None:
        self._calls = FunctionCalls(settings)

    async def declare(self, pools: Sequence[PoolDeclaration]) -> tuple[UUID, ...]:
        """Declare all pools that there are; returns the calls that were given a seat by it.

        One that is not named any more is removed: calls in flight there end as they would.
        """
        (row,) = await self._calls.fetch(_DECLARE, [asdict(pool) for pool in pools])
        return tuple(row[0])

    async def to_probe(
        self, failing_seconds: float, open_seconds: float | None = None
    ) -> list[PoolToProbe]:
        """Pools that were probed by nobody for so long; now this caller probes them.

        Those that fail, and, where a time is given for them, those that are open.
        """
        rows = await self._calls.fetch(_PROBE, failing_seconds, open_seconds)
        return [PoolToProbe(*row) for row in rows]

    async def reopen(self, pool: str) -> tuple[UUID, ...]:
        """Put a pool back; returns the calls that were given a seat by it."""
        (row,) = await self._calls.fetch(_REOPEN, pool)
        return tuple(row[0])

    async def close(self) -> None:
        """Close every connection."""
        await self._calls.close()
