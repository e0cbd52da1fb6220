"""What clients send and get about runs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, Field, field_validator

from app.api.schemas import Metadata, QueryModel, StrictModel, Unavailable, Uuid
from app.api.thread_schemas import CheckpointRef
from app.runs.runs import MultitaskStrategy, StreamMode

RunStatus = Literal["pending", "running", "error", "success", "timeout", "interrupted"]
RunField = Literal[
    "run_id",
    "thread_id",
    "assistant_id",
    "graph_id",
    "created_at",
    "updated_at",
    "status",
    "state",
    "attempt",
    "metadata",
    "kwargs",
    "multitask_strategy",
    "priority",
    "due_at",
    "error",
    "cancel_requested_at",
]
StreamModes = Annotated[list[StreamMode], Field(max_length=20)]


class RunConfig(StrictModel):
    """LangGraph's configuration of a run, as far as a client may choose it."""

    tags: Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=50)] | None = None
    recursion_limit: int | None = Field(None, ge=1)
    configurable: dict[str, Any] | None = None
    metadata: Metadata | None = None


class RunCommand(StrictModel):
    """What to tell a run that waits for a person."""

    resume: Any = Field(
        description="An answer by each open interrupt's id; or the bare answer to the only one."
    )
    update: Unavailable = None
    goto: Unavailable = None

    @field_validator("resume")
    @classmethod
    def _is_something(cls, value: object) -> object:
        if value is None:
            raise ValueError("LangGraph takes null for no answer: name the interrupt's id.")
        return value


class RunCreate(StrictModel):
    """A run to be accepted. Fields without a description are LangGraph's."""

    assistant_id: Annotated[str, Field(min_length=1, max_length=200)] = Field(
        description="A graph's name or an assistant's id."
    )
    input: dict[str, Any] | None = Field(
        None, description="Without one, and without a `checkpoint`, what was left is resumed."
    )
    config: RunConfig | None = None
    context: dict[str, Any] | None = None
    metadata: Metadata | None = None
    stream_mode: StreamMode | StreamModes | None = Field(
        None, description="`values` if absent or empty."
    )
    stream_subgraphs: bool | None = None
    stream_resumable: bool | None = Field(None, description="Every stream is.")
    checkpoint: CheckpointRef | None = None
    checkpoint_id: Uuid | None = None
    if_not_exists: Literal["create", "reject"] | None = None
    on_disconnect: Literal["cancel", "continue"] | None = Field(
        None, description="What becomes of the run when its client goes away. Default: `continue`."
    )
    multitask_strategy: MultitaskStrategy | None = Field(
        None, description="What becomes of the thread's other runs. Default: `enqueue`."
    )
    durability: Literal["sync", "async"] | None = Field(
        None, description="Both mean: stored before the next step."
    )
    checkpoint_during: bool | None = None
    priority: int | None = Field(
        None,
        ge=-100,
        le=100,
        description="Among your own threads: those with a higher one are begun first. Default: 0.",
    )
    after_seconds: float | None = Field(
        None, ge=0, le=31_536_000, description="Begin no sooner than this."
    )
    command: RunCommand | None = Field(
        None,
        description="With `resume`, the thread's waiting run goes on, and no other is made. What it"
        " was made with may be repeated, not changed; `stream_mode` says what to read of the rest.",
    )
    interrupt_before: Unavailable = None
    interrupt_after: Unavailable = None
    webhook: Unavailable = None
    feedback_keys: Unavailable = None
    on_completion: Unavailable = None
    strict_resume: Unavailable = None
    langsmith_tracer: Unavailable = None

    @field_validator("command", mode="before")
    @classmethod
    def _says_something(cls, value: object) -> object:
        return None if value == {} else value

    @field_validator("checkpoint_during")
    @classmethod
    def _keeps_checkpoints(cls, value: object) -> object:
        if value is False:
            raise ValueError("Checkpoints are always kept during a run.")
        return value

    @property
    def ends_with_client(self) -> bool:
        """Whether a client that goes away cancels the run."""
        return self.on_disconnect == "cancel"

    @property
    def stream_modes(self) -> tuple[StreamMode, ...]:
        """The modes that were asked for, each once."""
        if isinstance(self.stream_mode, str):
            return (self.stream_mode,)
        return tuple(dict.fromkeys(self.stream_mode or ())) or ("values",)


def _listed(value: object) -> object:
    """An absent parameter may arrive as an empty one."""
    if isinstance(value, list):
        return [each for each in value if each != ""] or None
    return value


class RunListQuery(QueryModel):
    """Which of a thread's runs to list."""

    limit: Annotated[int, Field(ge=1, le=1000)] = 10
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    status: RunStatus | None = None
    select: Annotated[list[RunField], Field(max_length=20)] | None = None


def _or_false(value: object) -> object:
    return False if value == "" else value


class JoinQuery(QueryModel):
    """How to wait for a run."""

    cancel_on_disconnect: Annotated[bool, BeforeValidator(_or_false)] = Field(
        False, description="Cancel the run when this client goes away."
    )


class StreamQuery(JoinQuery):
    """What of a run's stream to read; everything if nothing is named."""

    stream_mode: Annotated[StreamModes | None, BeforeValidator(_listed)] = None


class RunErrorView(BaseModel):
    """Why a run failed."""

    code: str
    message: str


class RunView(BaseModel):
    """One execution of a graph on a thread. With `select`, only what was asked for."""

    run_id: UUID | None = None
    thread_id: UUID | None = None
    assistant_id: UUID | None = None
    graph_id: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    status: RunStatus | None = Field(None, description="LangGraph's word.")
    state: str | None = Field(None, description="Stoa's, which says more.")
    attempt: int | None = None
    metadata: dict[str, Any] | None = None
    kwargs: dict[str, Any] | None = None
    multitask_strategy: str | None = None
    priority: int | None = Field(None, description="Among the threads of its owner.")
    due_at: datetime | None = Field(None, description="When it takes its place in the queue.")
    error: RunErrorView | None = None
    cancel_requested_at: datetime | None = Field(
        None, description="When a cancel was accepted: until it has ended, the run is stopping."
    )
