"""What became of a run, as an operator may know it: no word that a person wrote, no user's id."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field, computed_field

from app.admin.acts import looked
from app.admin.moment import Moment
from app.databases import maintenance_settings
from app.logging import tenant_reference
from tenancy.database.inspection import InspectionDatabase
from tenancy.database.roles import assert_role
from tenancy.errors import RunNotFound
from tenancy.principal import UserId
from tenancy.run_states import RunState

if TYPE_CHECKING:
    from app.settings import Settings
    from tenancy.acts import Act

_EPOCH = datetime(1582, 10, 15, tzinfo=UTC)
"""Where the timestamps of UUIDs of version 6 begin, in steps of 100 ns."""
_STEP_BITS = 14


class Lease(BaseModel):
    """The worker that has the run now."""

    worker_id: UUID
    host: str
    until: Moment
    over: bool
    draining: bool


class Attempt(BaseModel):
    """One claim. ``host`` is known while the worker's row is there."""

    attempt: int
    fence: int
    worker_id: UUID
    host: str | None
    claimed_at: Moment
    ended_at: Moment | None
    ended_by: str | None


class Step(BaseModel):
    """A checkpoint of the graph itself, read from its id alone."""

    checkpoint_id: str
    step: int
    at: Moment


class Checkpoints(BaseModel):
    """What the run wrote to its thread's state and is still there."""

    root: int
    sub: int
    namespaces: int = Field(description="Of subgraphs.")
    steps: list[Step]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def count(self) -> int:
        """All of them."""
        return self.root + self.sub


class EventKind(BaseModel):
    """The events of one kind in the run's log."""

    kind: str
    count: int
    bytes: int
    first_seq: int
    last_seq: int
    first_at: Moment
    last_at: Moment


class Question(BaseModel):
    """What the run asked its person: of which kind, and whether it was decided."""

    approval_id: UUID
    kind: Literal["call", "elicitation", "in_doubt"]
    state: Literal["open", "decided", "expired", "superseded"]
    decision: str | None
    asked_at: Moment
    expires_at: Moment
    decided_at: Moment | None


class Calls(BaseModel):
    """Calls of tools that may change something, as they are on record."""

    begun: int
    sent: int = Field(description="How often they were sent, all together.")
    without_outcome: int = Field(description="Under way, or in doubt.")
    late: int = Field(description="Those whose outcome came after they were given up.")


class Timeline(BaseModel):
    """Everything about a run but its content."""

    run_id: UUID
    tenant: str = Field(description="The user's pseudonym, as in logs.")
    thread_id: UUID
    graph_id: str
    request_id: str | None = Field(description="Of the request that made it; logs have it, too.")
    state: RunState
    error_code: str | None
    multitask_strategy: str
    fence: int
    attempt: int
    attempts_spent: int
    active_seconds: float
    created_at: Moment
    claimed_at: Moment | None
    ended_at: Moment | None
    cancel_requested_at: Moment | None
    cancel_action: str | None
    pruned_through: int
    pruned_at: Moment | None
    log_dropped_at: Moment | None
    lease: Lease | None
    attempts: list[Attempt]
    questions: list[Question]
    calls: Calls
    checkpoints: Checkpoints
    events: list[EventKind]


async def timeline_of(settings: Settings, run_id: UUID, act: Act) -> Timeline:
    """What became of a run, whoever's it is; the look goes on their record.

    Raises:
        RunNotFound: nobody has such a run.
        WrongRole: the maintenance role may do more or less than it must.
        DatabaseUnavailable: Postgres cannot be reached.
    """
    maintenance = maintenance_settings(settings)
    await assert_role(maintenance, reads_content=False)
    database = InspectionDatabase(maintenance)
    try:
        found = await database.run(run_id)
    finally:
        await database.close()
    if found is None:
        raise RunNotFound(f"There is no run {run_id}; it may be deleted.")
    await looked(settings, act, UUID(found["run"]["user_id"]), str(run_id))
    return timeline_from(found)


def timeline_from(found: dict[str, Any]) -> Timeline:
    """The view of what the database says."""
    run, checkpoints = found["run"], found["checkpoints"]
    steps = [step_of(each) for each in checkpoints.pop("root_ids")]
    return Timeline.model_validate(
        {
            **run,
            "tenant": tenant_reference(UserId(UUID(run["user_id"]))),
            "lease": found["lease"],
            "attempts": found["attempts"],
            "questions": found["questions"],
            "calls": found["calls"],
            "checkpoints": {**checkpoints, "steps": steps},
            "events": found["events"],
        }
    )


def step_of(checkpoint_id: str) -> Step:
    """Which step a checkpoint was, and when: LangGraph makes both part of its id (UUID, version 6).

    The number is the thread's, in fourteen bits; -1 is a first input's.
    """
    bits = UUID(checkpoint_id).int
    ticks = (bits >> 80) << 12 | bits >> 64 & 0xFFF
    number = bits >> 48 & (1 << _STEP_BITS) - 1
    if number >= 1 << _STEP_BITS - 1:
        number -= 1 << _STEP_BITS
    return Step(
        checkpoint_id=checkpoint_id,
        step=number,
        at=_EPOCH + timedelta(microseconds=ticks // 10),
    )
