"""What clients send and get about what can be mentioned in a message."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, Field

from app.api.schemas import StrictModel, Uuid
from app.mentions.refs import Kind
from app.mentions.sources import Status

LONGEST_QUERY = 200
LONGEST_UNTRIMMED = 1000
MOST_RESULTS = 10


def _query(given: str) -> str:
    query = given.strip()
    if not 0 < len(query) <= LONGEST_QUERY:
        raise ValueError(f"Text of 1 to {LONGEST_QUERY} characters.")
    if any(unicodedata.category(each) in ("Cc", "Zl", "Zp") for each in query):
        raise ValueError("Text must not contain control characters.")
    return query


class MentionSearch(StrictModel):
    """What to look for, as it was typed after the `@`."""

    q: Annotated[str, Field(max_length=LONGEST_UNTRIMMED), AfterValidator(_query)] = Field(
        description=f"1 to {LONGEST_QUERY} characters after trimming, none of them control ones."
    )
    limit: Annotated[int, Field(ge=1, le=MOST_RESULTS)] = Field(
        5, description="The most results of each group."
    )
    scope: Uuid | None = Field(
        None,
        description="The conversation that is written in: it is not found itself, and what is"
        " remembered from it goes first.",
    )


class MentionView(BaseModel):
    """Something that can be mentioned."""

    version: Literal[1]
    ref: str = Field(description="What a message's `additional_kwargs.mentions` holds.")
    provider: str = Field(description="Who offers it: `stoa`, or a tool server's name.")
    kind: Kind
    id: str = Field(description="What its provider knows it by.")
    title: str
    url: str | None = Field(description="Where the browser client shows it.")
    scope: UUID | None = Field(description="The conversation that it belongs to, if to one alone.")


class MentionGroupView(BaseModel):
    """What one source has found, or why it has not."""

    source: Literal["threads", "memories", "resources", "prompts", "tools", "models"]
    provider: Literal["stoa", "mcp"]
    kind: Kind
    display_name: str
    status: Status
    results: list[MentionView]


class MentionsView(BaseModel):
    """A group of each source, always in the same order."""

    query: str
    groups: list[MentionGroupView]
