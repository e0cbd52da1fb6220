"""What became of a run, under the maintenance role: any person's, and nothing that anybody said.

The role's grants are column lists without content, as the dispatch role's are. Only
``app.admin`` uses it (a contract in ``pyproject.toml`` says so).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenancy.database.calls import FunctionCalls

if TYPE_CHECKING:
    from uuid import UUID

    from tenancy.database.engine import DatabaseSettings

_INSPECT = "SELECT tenant.inspect_run($1)"


class InspectionDatabase:
    """What an operator may look into."""

    def __init__(self, settings: DatabaseSettings) -> None:
        self._calls = FunctionCalls(settings)

    async def run(self, run_id: UUID) -> dict[str, Any] | None:
        """Everything about a run but its content, from one snapshot; None if nobody has it."""
        (row,) = await self._calls.fetch(_INSPECT, run_id)
        found: dict[str, Any] | None = row[0]
        return found

    async def close(self) -> None:
        """Close every connection."""
        await self._calls.close()
