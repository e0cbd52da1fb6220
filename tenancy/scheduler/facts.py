"""How the scheduler is doing, in numbers: what metrics are made of. Under the dispatch role."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenancy.database.calls import FunctionCalls

if TYPE_CHECKING:
    from tenancy.database.engine import DatabaseSettings

_FACTS = "SELECT dispatch.scheduler_facts()"


class SchedulerFacts:
    """Reads them, all from one snapshot."""

    def __init__(self, settings: DatabaseSettings) -> None:
        self._calls = FunctionCalls(settings)

    async def read(self) -> dict[str, Any]:
        """Models, pools, runs by state, people who wait, and how long the oldest has waited.

        Raises:
            DatabaseUnavailable: Postgres is away.
        """
        (row,) = await self._calls.fetch(_FACTS)
        facts: dict[str, Any] = row[0]
        return facts

    async def close(self) -> None:
        """Close every connection."""
        await self._calls.close()
