"""Memory for one run: what its agent is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.memory.recall import TurnRecall
from app.memory.search import MemorySearch
from app.memory.tools import memory_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.memory.embedding import Embedder
    from app.tools.calls import AgentTool
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import ClaimedRun
    from tenancy.scheduler.limits import Limits


@dataclass(frozen=True, slots=True)
class RunMemory:
    """The tools by their names, and what recalls at the beginning of the turn."""

    tools: Mapping[str, AgentTool]
    recall: TurnRecall


def memory_for_run(
    database: TenantDatabase, run: ClaimedRun, limits: Limits, embedder: Embedder | None
) -> RunMemory:
    """Bind memory to a run's user and fence. ``limits`` are of whom no others were set.

    ``embedder`` is the worker's, None without an embedding model. It finds the run by its scope
    (``app.models.scope``), as every model call does.
    """
    search = MemorySearch(database, run, limits, embedder)
    return RunMemory(memory_tools(database, run, limits, search), TurnRecall(search))
