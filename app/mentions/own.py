"""A person's own conversations and memories, to be mentioned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.mentions.refs import Kind, Ref
from app.mentions.sources import Found

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.memory.memories import Memories
    from app.mentions.sources import Asked
    from tenancy.database.tenant import TenantDatabase

_FIND_TITLES = "SELECT * FROM tenant.find_titles($1, $2, $3, $4)"


class ThreadSource:
    """Conversations, by their titles."""

    source = "threads"
    provider = "stoa"
    kind: Kind = "thread"
    display_name = "Chats"

    def __init__(self, database: TenantDatabase) -> None:
        self._database = database

    async def find(self, asked: Asked) -> Sequence[Found]:
        """Those whose titles have every word of the query; not the one that is written in."""
        rows = await self._database.call(
            asked.owner, _FIND_TITLES, asked.query, asked.scope, asked.limit
        )
        return [
            Found(Ref("thread", str(thread_id)), title, f"/chat/{thread_id}")
            for thread_id, title in rows
        ]


class MemorySource:
    """What is remembered, by its words: no model is asked while somebody types."""

    source = "memories"
    provider = "stoa"
    kind: Kind = "memory"
    display_name = "Memories"

    def __init__(self, memories: Memories) -> None:
        self._memories = memories

    async def find(self, asked: Asked) -> Sequence[Found]:
        """The best; of these, what comes from the conversation that is written in goes first."""
        found = [
            each.memory for each in await self._memories.find(asked.owner, asked.query, asked.limit)
        ]
        if asked.scope is not None:
            found.sort(key=lambda memory: memory.thread_id != asked.scope)
        return [
            Found(Ref("memory", str(each.memory_id)), each.content, "/memory", scope=each.thread_id)
            for each in found
        ]
