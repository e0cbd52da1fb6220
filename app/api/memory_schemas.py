"""What clients send and get about memories."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, BaseModel, Field

from app.api.schemas import QueryModel, StrictModel
from tenancy.checkpoints.memories import MOST_CHARACTERS


def _stripped(content: str) -> str:
    if not content.strip():
        raise ValueError("There is nothing in it.")
    return content.strip()


Content = Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS), AfterValidator(_stripped)]


class MemoryCreate(StrictModel):
    """Something to remember."""

    content: Content


class MemoryPatch(StrictModel):
    """What a memory is to say instead."""

    content: Content


class MemorySearch(StrictModel):
    """What to look for, by its words."""

    query: Annotated[str, Field(min_length=1, max_length=2000)]
    limit: Annotated[int, Field(ge=1, le=100)] = 10


class MemoryPage(QueryModel):
    """Which memories to list."""

    limit: Annotated[int, Field(ge=1, le=1000)] = 50
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0


class MemoryView(BaseModel):
    """Something that is remembered about the person who asks."""

    memory_id: UUID
    content: str
    thread_id: UUID | None = Field(
        description="The conversation that it comes from; null if they wrote it, or it is deleted."
    )
    run_id: UUID | None
    created_at: datetime
    updated_at: datetime


class FoundMemoryView(MemoryView):
    """A memory that has to do with what was looked for."""

    score: float = Field(description="The higher the better; to be compared within one answer.")
