"""What LangGraph's clients send and get about items of the store."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field

from app.api.schemas import QueryModel, StrictModel

MOST_LABELS = 20
MOST_NAMESPACE_BYTES = 1000
MOST_KEY_BYTES = 1000
"""Together they fit an entry of the database's index."""
MOST_MINUTES = 10 * 366 * 24 * 60
_OPERATORS = frozenset({"$eq", "$ne", "$gt", "$gte", "$lt", "$lte"})


def _label(label: str) -> str:
    if not label or "." in label or "\0" in label:
        raise ValueError("A label is a text without full stops, and not empty.")
    return label


def _prefix(labels: list[str]) -> list[str]:
    if len(".".join(labels).encode()) > MOST_NAMESPACE_BYTES:
        raise ValueError(f"At most {MOST_NAMESPACE_BYTES} bytes in all.")
    return labels


def _namespace(labels: list[str]) -> list[str]:
    if labels[0] == "langgraph":
        raise ValueError("The first label must not be `langgraph`.")
    return labels


def _key(key: str) -> str:
    if not key or "\0" in key or len(key.encode()) > MOST_KEY_BYTES:
        raise ValueError(f"A key is a text of at most {MOST_KEY_BYTES} bytes, and not empty.")
    return key


def _filter(wanted: dict[str, Any]) -> dict[str, Any]:
    for value in wanted.values():
        if isinstance(value, dict) and (not value or not value.keys() <= _OPERATORS):
            raise ValueError(
                f"What a field is compared with is a value, or an object of"
                f" {', '.join(sorted(_OPERATORS))}."
            )
    return wanted


def _not_offered(value: object) -> object:
    if value is not None:
        raise ValueError("Every text of an item is searched; leave it out.")
    return value


Label = Annotated[str, AfterValidator(_label)]
Prefix = Annotated[list[Label], Field(max_length=MOST_LABELS), AfterValidator(_prefix)]
Namespace = Annotated[
    list[Label],
    Field(min_length=1, max_length=MOST_LABELS),
    AfterValidator(_prefix),
    AfterValidator(_namespace),
]
Key = Annotated[str, AfterValidator(_key)]


class ItemPut(StrictModel):
    """An item to keep, instead of what is under its key."""

    namespace: Namespace
    key: Key
    value: dict[str, Any]
    index: Annotated[Any, AfterValidator(_not_offered)] = None
    ttl: Annotated[int, Field(ge=1, le=MOST_MINUTES)] | None = Field(
        None, description="Minutes after which it is gone. Absent: it stays."
    )


class ItemQuery(QueryModel):
    """Which item to read."""

    namespace: Annotated[str, Field(max_length=MOST_NAMESPACE_BYTES)] = Field(
        description="The labels, with full stops between them."
    )
    key: Key
    refresh_ttl: bool | None = None


class ItemDelete(StrictModel):
    """Which item to delete."""

    namespace: Namespace
    key: Key


class ItemSearch(StrictModel):
    """Which items to list: the newest first, or, with a query, those that share words with it."""

    namespace_prefix: Prefix = Field(default_factory=list)
    filter: Annotated[dict[str, Any], Field(max_length=20), AfterValidator(_filter)] | None = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 10
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    query: Annotated[str, Field(max_length=2000)] | None = None
    refresh_ttl: bool | None = Field(
        None, description="Whether the items' time begins anew; it does, unless this is false."
    )


class NamespaceSearch(StrictModel):
    """Which namespaces to list; `*` stands for any one label."""

    prefix: Prefix | None = None
    suffix: Prefix | None = None
    max_depth: Annotated[int, Field(ge=1, le=MOST_LABELS)] | None = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0


class ItemView(BaseModel):
    """An item."""

    namespace: list[str]
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime


class FoundItemView(ItemView):
    """An item of a list; the score is null where nothing was asked for."""

    score: float | None


class FoundItems(BaseModel):
    """A list of items."""

    items: list[FoundItemView]


class NamespaceList(BaseModel):
    """A list of namespaces."""

    namespaces: list[list[str]]
