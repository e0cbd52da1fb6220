"""What clients send and get about threads."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, Field

from app.api.schemas import Metadata, QueryModel, StrictModel, Unavailable, Uuid
from app.runs.threads import UNCHANGED, Unchanged
from tenancy.errors import InvalidInput
from tenancy.run_states import RunState

ThreadField = Literal[
    "thread_id",
    "title",
    "created_at",
    "updated_at",
    "metadata",
    "status",
    "run_state",
    "values",
    "interrupts",
]
Status = Literal["idle", "busy", "interrupted", "error"]

MOST_WITH_VALUES = 100
"""Threads in one answer with their values, each of which is read through its graph."""


MOST_MINUTES = 10 * 366 * 24 * 60
Minutes = Annotated[float, Field(gt=0, le=MOST_MINUTES)]


class ThreadTtl(StrictModel):
    """How long a thread is kept after the last time that anything happened in it."""

    ttl: Minutes = Field(description="Minutes.")
    strategy: Literal["delete"] = Field("delete", description="What becomes of it then.")


def _minutes(ttl: ThreadTtl | float | None) -> float | None:
    return ttl.ttl if isinstance(ttl, ThreadTtl) else ttl


class ThreadCreate(StrictModel):
    """A new thread."""

    thread_id: Uuid | None = None
    metadata: Metadata | None = None
    if_exists: Literal["raise", "do_nothing"] | None = None
    ttl: ThreadTtl | Minutes | None = Field(
        None, description="How long it is kept idle; a number is minutes. Default: as others are."
    )
    supersteps: Unavailable = None

    @property
    def ttl_minutes(self) -> float | None:
        """The time that it is to have."""
        return _minutes(self.ttl)


class ThreadPatch(StrictModel):
    """Metadata to merge into a thread's own, and how long it is to be kept."""

    metadata: Metadata | None = None
    ttl: ThreadTtl | Minutes | None = Field(
        None, description="A new time, which begins now; null takes away the one it has."
    )

    @property
    def ttl_minutes(self) -> float | Unchanged | None:
        """The time that it is to have from now on."""
        return _minutes(self.ttl) if "ttl" in self.model_fields_set else UNCHANGED


class ThreadCount(StrictModel):
    """Which threads to count."""

    metadata: Metadata | None = None
    status: Status | None = None
    values: Unavailable = None


class ThreadSearch(ThreadCount):
    """Which threads to list, in which order, and what of each."""

    ids: Annotated[list[Uuid], Field(max_length=1000)] | None = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 10
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    sort_by: Literal["thread_id", "status", "created_at", "updated_at"] | None = None
    sort_order: Literal["asc", "desc"] | None = None
    select: Annotated[list[ThreadField], Field(max_length=20)] | None = None
    extract: Unavailable = None


class ThreadQuery(QueryModel):
    """Query of one thread."""

    include: Literal["ttl"] | None = Field(None, description="What to answer besides.")


class CheckpointRef(StrictModel):
    """A checkpoint as LangGraph's clients name it. The route's thread wins over this one's."""

    thread_id: str | None = None
    checkpoint_id: Uuid | None = None
    checkpoint_ns: Annotated[str, Field(max_length=1000)] | None = None
    checkpoint_map: dict[str, Any] | None = None

    @property
    def is_of_subgraph(self) -> bool:
        """Whether it names a state inside another one."""
        return bool(self.checkpoint_ns or self.checkpoint_map)

    @property
    def id_text(self) -> str | None:
        """The checkpoint's id as the saver knows it."""
        return str(self.checkpoint_id) if self.checkpoint_id else None


def chosen_checkpoint(named: CheckpointRef | None, checkpoint_id: UUID | None) -> str | None:
    """The one checkpoint of the thread itself that a body names in one of two ways, or in both.

    Raises:
        InvalidInput: it names two, or a subgraph's.
    """
    if named is not None and named.is_of_subgraph:
        raise InvalidInput("Name a checkpoint of the thread itself, not a subgraph's.")
    given = (named.checkpoint_id if named else None, checkpoint_id)
    chosen = {str(each) for each in given if each is not None}
    if len(chosen) > 1:
        raise InvalidInput("`checkpoint` and `checkpoint_id` name two different checkpoints.")
    return next(iter(chosen), None)


StateField = Annotated[
    str,
    Field(
        pattern=r"^(values(\..{1,200})?|next|tasks|checkpoint|metadata|created_at"
        r"|parent_checkpoint|interrupts)$"
    ),
]


class StateQuery(QueryModel):
    """Query of a state."""

    subgraphs: bool = False
    select: Annotated[list[StateField], Field(max_length=20)] | None = None


class StateAtCheckpoint(StrictModel):
    """Which state to read."""

    checkpoint: CheckpointRef
    subgraphs: bool | None = None
    select: Annotated[list[StateField], Field(max_length=20)] | None = None


class StateUpdate(StrictModel):
    """What to change about a thread's state."""

    values: dict[str, Any] | None = Field(
        None, description="What the node would have returned; null changes no value."
    )
    as_node: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None,
        description="Whose change it is, and so what comes next. Absent: whose turn was last.",
    )
    checkpoint: CheckpointRef | None = None
    checkpoint_id: Uuid | None = None


class StateUpdated(BaseModel):
    """Where the new state is."""

    checkpoint: dict[str, Any]
    configurable: dict[str, Any] = Field(description="The same, where JavaScript's client looks.")


def _checkpoint_id(value: object) -> object:
    return value.get("checkpoint_id") if isinstance(value, dict) else value


class HistorySearch(StrictModel):
    """Which of a thread's states to list, newest first."""

    limit: Annotated[int, Field(ge=1, le=1000)] = 10
    before: Annotated[Uuid | None, BeforeValidator(_checkpoint_id)] = None
    metadata: Metadata | None = None
    checkpoint: CheckpointRef | None = None
    select: Annotated[list[StateField], Field(max_length=20)] | None = None


class ThreadView(BaseModel):
    """One conversation. With `select`, only the fields that were asked for."""

    thread_id: UUID | None = None
    title: str | None = Field(None, description="The first line of the first message.")
    created_at: datetime | None = None
    updated_at: datetime | None = None
    metadata: dict[str, Any] | None = None
    status: Status | None = None
    run_state: RunState | None = Field(
        None,
        description="How its newest open run stands, one under way before queued ones; else its"
        " last run; null without any.",
    )
    values: dict[str, Any] | None = Field(None, description="The newest state; null before any.")
    interrupts: dict[str, Any] | None = None
    ttl: dict[str, Any] | None = Field(
        None,
        description="With `include=ttl`: `strategy`, `ttl_minutes`, and `expires_at` if nothing"
        " happens in it any more. Null: it is kept as others are.",
    )


class StateView(BaseModel):
    """A thread's state at one checkpoint."""

    values: Any = None
    next: list[str] | None = None
    tasks: list[dict[str, Any]] | None = None
    metadata: dict[str, Any] | None = None
    created_at: datetime | None = None
    checkpoint: dict[str, Any] | None = None
    parent_checkpoint: dict[str, Any] | None = None
    interrupts: list[dict[str, Any]] | None = None
