"""The queues as an operator sees them: ids, states, counts and times, nobody's words."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, Field

from app.admin.moment import Moment
from app.admin.server_names import without_credentials

WaitReason = Literal[
    "queue",
    "own_limit",
    "suspended",
    "scheduled",
    "thread",
    "model_unavailable",
    "over_budget",
]


class PoolView(BaseModel):
    """A model on a server, with its seats."""

    pool: str
    server: Annotated[str, AfterValidator(without_credentials)]
    model: str
    state: Literal["open", "failing", "removed"]
    reason: Literal["unreachable", "model_missing", "failed"] | None = Field(
        description="Why it was taken out, or what it last failed with."
    )
    failing_since: Moment | None
    declared_capacity: int = Field(description="What the settings say.")
    set_capacity: int | None = Field(description="What an operator set in its place.")
    capacity: int
    in_use: int = Field(description="Calls in flight.")
    cooling: int = Field(description="Seats of dead workers, until they can be used again.")


class ModelView(BaseModel):
    """The queue that all pools with this model serve."""

    model: str
    capacity: int = Field(description="Seats of all pools that are open.")
    in_use: int = Field(description="Seats that nobody else can have, those that cool down too.")
    waiting_calls: int
    waiting_users: int
    call_seconds: float | None = Field(description="How long calls take of late.")
    vtime_spread: float = Field(
        description="Between those who are next and last in line for a seat, in tokens."
    )


class RunCounts(BaseModel):
    """Runs that have not ended, by what they do."""

    running: int
    queued: int
    scheduled: int
    waiting: int = Field(description="For their person; they hold nothing.")


class QuestionCounts(BaseModel):
    """What is asked of people and still open, of one kind."""

    kind: Literal["call", "elicitation", "in_doubt"]
    open: int
    people: int
    oldest_seconds: float


class UserInLine(BaseModel):
    """Somebody who has something in a queue or in flight."""

    user_id: UUID
    plan: str | None
    weight: float
    running: int
    queued: int
    seats: int
    waiting_calls: int
    longest_wait_seconds: float
    lag: float = Field(description="How far ahead of virtual time their use is, in tokens.")
    why: WaitReason | None = Field(description="Why they wait, where they do.")


class WaitingItem(BaseModel):
    """A run that waits for its start, or its call that waits for a seat."""

    user_id: UUID
    run_id: UUID
    waits_for: Literal["start", "model"]
    model: str | None = Field(description="Known once the run has begun.")
    priority: int
    since: Moment
    waited_seconds: float
    why: WaitReason


class QueueView(BaseModel):
    """Models, pools, runs, and who and what waits longest."""

    at: Moment
    models: list[ModelView]
    pools: list[PoolView]
    runs: RunCounts
    questions: list[QuestionCounts]
    users: list[UserInLine]
    waiting: list[WaitingItem]
