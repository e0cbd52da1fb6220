"""One person's memories: kept, corrected, forgotten, listed, found by words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from tenancy.errors import MemoryNotFound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner
    from tenancy.scheduler.limits import Limits

_LIST = "SELECT * FROM tenant.list_memories($1, $2, $3, $4)"
_COUNT = "SELECT tenant.count_memories($1)"
_RECALL = "SELECT * FROM tenant.recall($1, $2, NULL, NULL, $3)"
_REMEMBER = "SELECT * FROM tenant.remember($1, NULL, NULL, $2, $3, $4)"
_EDIT = "SELECT * FROM tenant.edit_memory($1, $2, $3, $4)"
_FORGET = "SELECT tenant.forget($1, NULL, NULL, $2)"


@dataclass(frozen=True, slots=True)
class Memory:
    """Something that is remembered about a person."""

    memory_id: UUID
    content: str
    thread_id: UUID | None
    """The conversation that it comes from; None if the person wrote it, or has deleted that."""
    run_id: UUID | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class FoundMemory:
    """A memory that answers a question, and how well: a number for comparing in one answer."""

    memory: Memory
    score: float


class Memories:
    """What a person does with their own memories. ``limits`` are of whom no others were set."""

    def __init__(self, database: TenantDatabase, limits: Limits) -> None:
        self._database = database
        self._limits = dict(limits)

    async def page(self, owner: Owner, *, limit: int, offset: int) -> tuple[list[Memory], int]:
        """A page, the newest first, and how many there are in all."""
        rows = await self._database.call(owner, _LIST, None, limit, offset)
        ((total,),) = await self._database.call(owner, _COUNT)
        return [memory_of(row) for row in rows], total

    async def get(self, owner: Owner, memory_id: UUID) -> Memory:
        """One of them.

        Raises:
            MemoryNotFound: there is none of this id.
        """
        return _only(await self._database.call(owner, _LIST, memory_id, 1, 0))

    async def find(self, owner: Owner, query: str, limit: int) -> list[FoundMemory]:
        """Those that share words with a question, best first. No model is asked."""
        return found(await self._database.call(owner, _RECALL, query, limit))

    async def add(self, owner: Owner, content: str) -> tuple[Memory, bool]:
        """Keep something, and tell whether it is new: nothing is kept twice in the same words.

        Raises:
            MemoryFull: there is as much as the person may keep.
        """
        (row,) = await self._database.call(owner, _REMEMBER, uuid4(), content, self._limits)
        return memory_of(row), row["is_new"]

    async def edit(self, owner: Owner, memory_id: UUID, content: str) -> Memory:
        """Have it say something else.

        Raises:
            MemoryNotFound: there is none of this id.
            MemoryFull: there would be more than the person may keep.
        """
        rows = await self._database.call(owner, _EDIT, memory_id, content, self._limits)
        return _only(rows)

    async def forget(self, owner: Owner, memory_id: UUID) -> None:
        """Delete one.

        Raises:
            MemoryNotFound: there is none of this id.
        """
        ((forgotten,),) = await self._database.call(owner, _FORGET, memory_id)
        if not forgotten:
            raise MemoryNotFound

    async def forget_all(self, owner: Owner) -> None:
        """Delete every one."""
        await self._database.call(owner, _FORGET, None)


def memory_of(row: Mapping[str, Any]) -> Memory:
    """A memory, from a row that has its columns."""
    names = ("memory_id", "content", "thread_id", "run_id", "created_at", "updated_at")
    return Memory(*(row[name] for name in names))


def found(rows: Sequence[Mapping[str, Any]]) -> list[FoundMemory]:
    """Memories with their scores, from rows that have both."""
    return [FoundMemory(memory_of(row), row["score"]) for row in rows]


def _only(rows: Sequence[Mapping[str, Any]]) -> Memory:
    if not rows:
        raise MemoryNotFound
    return memory_of(rows[0])
