"""What there is to search for mentions in one process of the service, in the order it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.memory.tools import TOOL_NAMES
from app.mentions.checking import MentionCheck
from app.mentions.offered import PromptSource, ResourceSource, ToolSource
from app.mentions.one_look import OneLook
from app.mentions.own import MemorySource, ThreadSource
from app.mentions.search import MentionSearch
from app.mentions.served import ModelSource
from app.tools.builtin import builtin_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from app.connections.standing import UserConnections
    from app.memory.memories import Memories
    from app.settings import BuiltinTool
    from tenancy.database.tenant import TenantDatabase


@dataclass(frozen=True, slots=True)
class Mentions:
    """One process's."""

    search: MentionSearch
    check: MentionCheck


def open_mentions(
    database: TenantDatabase,
    memories: Memories,
    connections: UserConnections,
    builtin: Collection[BuiltinTool],
    models: Callable[[], Collection[str]],
) -> Mentions:
    """What is found of everything of a person's, and looked for. ``models`` never waits."""
    own_tools, servers = own_tool_names(builtin), OneLook(connections)
    search = MentionSearch(
        [
            ThreadSource(database),
            MemorySource(memories),
            ResourceSource(servers),
            PromptSource(servers),
            ToolSource(servers, own_tools),
            ModelSource(models),
        ]
    )
    return Mentions(search, MentionCheck(database, connections, own_tools, models))


def own_tool_names(builtin: Collection[BuiltinTool]) -> tuple[str, ...]:
    """What the tools are called that come with the service."""
    memory = TOOL_NAMES if "memory" in builtin else ()
    return (*memory, *(tool.name for tool in builtin_tools(builtin)))
