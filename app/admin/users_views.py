"""People as an operator sees them: ids, states, times, counts and sizes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from pydantic import BaseModel, Field

from app.admin.limits_views import LimitValues, user_limits
from app.admin.moment import Moment
from app.admin.usage import Usage
from tenancy.oversight.people import PeopleOrder as PeopleOrder
from tenancy.oversight.people import UserState as UserState


class UserSummary(BaseModel):
    """One person, in numbers."""

    user_id: UUID
    state: UserState
    state_at: Moment | None = Field(description="Since when; null while it was never changed.")
    created_at: Moment
    last_seen_at: Moment | None = Field(
        description="To the minute; null where no request of theirs was counted."
    )
    threads: int
    runs: int
    open_runs: int = Field(description="Those that wait, run, or wait for their person.")
    waiting_approvals: int
    bytes: int = Field(description="Of events and of state, where conversations lie.")


class UserDetail(UserSummary):
    """All of one person that an operator may know."""

    rows: dict[str, int] = Field(description="How many rows each table has of theirs.")
    sizes: dict[str, int] = Field(description="Bytes, of the tables that grow.")
    plan: str | None
    limits: LimitValues = Field(description="Their own; what is absent is the plan's.")
    effective: LimitValues = Field(description="All that are in force; null is no limit.")
    updated_at: Moment | None = Field(description="Of the limits; null while nothing was set.")
    used_today: Usage = Field(description="On this day of UTC.")
    used_this_month: Usage = Field(description="In this month of UTC.")
    erasure_id: UUID | None = Field(description="While they are being erased.")


class UserPage(BaseModel):
    """Some of all people."""

    total: int
    users: list[UserSummary]


def user_detail(found: dict[str, Any]) -> UserDetail:
    """A person, their limits in the order of the catalogue."""
    limits = user_limits(found)
    ordered = {"limits": limits.limits, "effective": limits.effective}
    return UserDetail.model_validate({**found, **ordered})
