"""What there is to search for mentions in one process of the service, in the order it is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.memory.tools import TOOL_NAMES
from app.mentions.offered import PromptSource, ResourceSource, ToolSource
from app.mentions.own import MemorySource, ThreadSource
from app.mentions.search import MentionSearch
from app.mentions.served import ModelSource
from app.tools.builtin import builtin_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from app.connections.standing import UserConnections
    from app.memory.memories import Memories
    from app.settings import BuiltinTool
    from tenancy.database.tenant import TenantDatabase


def open_mentions(
    database: TenantDatabase,
    memories: Memories,
    connections: UserConnections,
    builtin: Iterable[BuiltinTool],
    models: Callable[[], Iterable[str]],
) -> MentionSearch:
    """A search in everything of a person's. ``models`` tells at once which there are."""
    return MentionSearch(
        [
            ThreadSource(database),
            MemorySource(memories),
            ResourceSource(connections),
            PromptSource(connections),
            ToolSource(connections, own_tool_names(frozenset(builtin))),
            ModelSource(models),
        ]
    )


def own_tool_names(builtin: frozenset[BuiltinTool]) -> tuple[str, ...]:
    """What the tools are called that come with the service."""
    memory = TOOL_NAMES if "memory" in builtin else ()
    return (*memory, *(tool.name for tool in builtin_tools(builtin)))
