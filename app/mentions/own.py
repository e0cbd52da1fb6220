"""A person's own conversations and memories, to be mentioned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.mentions.refs import Kind, Ref
from app.mentions.sources import Found, SourceFailed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from app.memory.memories import Memories
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner

_FIND_TITLES = "SELECT * FROM tenant.find_titles($1, $2, $3)"
MOST_LOOKED_AT = 200
"""Memories among which those of one conversation are looked for."""


class ThreadSource:
    """Conversations, by their titles."""

    source = "threads"
    provider = "stoa"
    kind: Kind = "thread"
    display_name = "Chats"

    def __init__(self, database: TenantDatabase) -> None:
        self._database = database

    async def find(
        self, owner: Owner, query: str, limit: int, scope: UUID | None
    ) -> Sequence[Found]:
        """Those whose titles have every word of the query."""
        if scope is not None:
            raise SourceFailed("unsupported_scope")
        rows = await self._database.call(owner, _FIND_TITLES, query, limit)
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

    async def find(
        self, owner: Owner, query: str, limit: int, scope: UUID | None
    ) -> Sequence[Found]:
        """The best; in a scope, those of the best that come from that conversation."""
        most = limit if scope is None else MOST_LOOKED_AT
        found = [each.memory for each in await self._memories.find(owner, query, most)]
        return [
            Found(Ref("memory", str(each.memory_id)), each.content, "/memory", scope=each.thread_id)
            for each in found
            if scope is None or each.thread_id == scope
        ]
