"""What clients get about their limits and their usage, and how they ask for it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from app.api.limit_views import Why
from app.api.schemas import QueryModel
from tenancy.scheduler.limits import LimitName
from tenancy.scheduler.own import ModelState
from tenancy.scheduler.usage import BucketSize


class LimitView(BaseModel):
    """One limit: what it allows, what is used of it, and when it begins anew."""

    name: LimitName
    unit: str
    limit: float | None = Field(description="Null: there is none.")
    used: float | None = Field(description="Null where nothing is counted.")
    remaining: float | None
    window_seconds: int | None = Field(description="Within which it is counted, where it is.")
    resets_at: datetime | None = Field(description="When nothing of it is used any more.")


class RunCounts(BaseModel):
    """How many runs are under way or wait. A scheduled one is not due yet."""

    running: int
    queued: int
    scheduled: int


class WaitingView(BaseModel):
    """A run that waits: to begin, or, having begun, for the model."""

    run_id: UUID
    thread_id: UUID
    waits_for: Literal["start", "model"]
    since: datetime
    due_at: datetime | None = Field(description="When it is due, if it is scheduled.")
    place: int | None = Field(
        description="1 is next, if everybody's turn comes in order of what they used."
        " Null where it waits for something else than its turn, and beyond one's first ten."
    )
    expected_wait_seconds: float | None = Field(description="From how long calls take.")
    why: Why


class ModelView(BaseModel):
    """A model's seats, and the part of those in use that is one's own."""

    model: str
    capacity: int
    in_use: int
    mine: int
    share: float
    state: ModelState


class LimitsView(BaseModel):
    """What one may use, what one uses of it now, and where what one has asked for stands."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "plan": "team",
                "weight": 1,
                "limits": [
                    {
                        "name": "tokens_per_day",
                        "unit": "tokens",
                        "limit": 200000,
                        "used": 1200,
                        "remaining": 198800,
                        "window_seconds": 86400,
                        "resets_at": "2026-03-02T00:00:00.000000Z",
                    }
                ],
                "runs": {"running": 1, "queued": 1, "scheduled": 0},
                "waiting": [
                    {
                        "run_id": "6f1c1f0e-6f0f-4f8a-8f3b-0d4e0a8f6a51",
                        "thread_id": "0b0e4b9c-6a39-4b8c-9d51-7a1e5a1c9f10",
                        "waits_for": "start",
                        "since": "2026-03-01T10:15:00.000000Z",
                        "due_at": None,
                        "place": 2,
                        "expected_wait_seconds": 4.5,
                        "why": "queue",
                    }
                ],
                "models": [
                    {
                        "model": "smollm2:latest",
                        "capacity": 4,
                        "in_use": 4,
                        "mine": 1,
                        "share": 0.25,
                        "state": "open",
                    }
                ],
            }
        }
    )

    plan: str | None
    weight: float = Field(description="One's share of the model, beside others' weights.")
    limits: list[LimitView]
    runs: RunCounts
    waiting: list[WaitingView] = Field(description="The first hundred.")
    models: list[ModelView]


class UsageQuery(QueryModel):
    """Which time, in which steps."""

    begin: AwareDatetime | None = Field(
        None, alias="from", description="A day before `to`, if absent. With its time zone."
    )
    end: AwareDatetime | None = Field(None, alias="to", description="Now, if absent.")
    bucket: BucketSize = Field("hour", description="Hours and days of UTC, always whole ones.")


class UsageView(BaseModel):
    """What was used. Seconds are those of seats, and of calls that waited for one."""

    prompt_tokens: int
    output_tokens: int
    calls: int
    runs: int
    tool_calls: int
    seat_seconds: float
    wait_seconds: float
    longest_wait_seconds: float


class UsageBucketView(UsageView):
    """What was used in an hour or a day."""

    start: datetime


class UsageReportView(BaseModel):
    """What was used in each hour or day of a time, and in all of it."""

    begin: datetime = Field(alias="from")
    end: datetime = Field(alias="to")
    bucket: BucketSize
    buckets: list[UsageBucketView]
    total: UsageView
