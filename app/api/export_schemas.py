"""What clients get about what is kept of them, and how they ask for a conversation."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from app.api.schemas import QueryModel


class ArchiveQuery(QueryModel):
    """Whether everything is wanted, or only whether it may be had."""

    dry_run: bool = Field(
        False,
        description="Say whether an export may begin, and begin none: a browser that follows"
        " a link has no words for a refusal.",
    )


class ExportQuery(QueryModel):
    """In which form a conversation is exported."""

    format: Literal["md", "jsonl"] = "md"


class KindView(BaseModel):
    """How much is kept of one kind."""

    kind: str
    rows: int
    bytes: int = Field(description="As they are stored.")
    is_whole: bool = Field(description="False: there is so much that not all was counted.")


class DataView(BaseModel):
    """What is kept of a person, and for how long."""

    kinds: list[KindView]
    total_bytes: int
    retention: dict[str, float | None] = Field(
        description="For how many seconds each kind is kept; null: until it is deleted."
    )
