"""Plans and limits as an operator sees and sets them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from pydantic import BaseModel, Field

from app.admin.moment import Moment
from tenancy.scheduler.limits import RULES, Limits

PLAN_NAME = r"^[a-z0-9][a-z0-9_-]{0,39}$"
LimitValues = dict[str, int | float | None]


class UserLimits(BaseModel):
    """What one person may use."""

    user_id: UUID
    plan: str | None
    limits: LimitValues = Field(description="Their own; what is absent is the plan's.")
    effective: LimitValues = Field(description="All that are in force; null is no limit.")
    updated_at: Moment | None = Field(description="None while nothing was set.")


class PlanView(BaseModel):
    """Limits by a name that people are given."""

    plan: str
    limits: LimitValues
    users: int = Field(description="People who have it. Everybody else has `default`.")


class RuleView(BaseModel):
    """What a limit is, and which values it may have."""

    name: str
    meaning: str
    unit: str
    least: int | float
    most: int | float
    whole: bool
    may_be_unlimited: bool
    default: int | float | None = Field(description="Where neither person nor plan says otherwise.")


class PlansView(BaseModel):
    """Every plan, and what can be in one."""

    plans: list[PlanView]
    rules: list[RuleView]


def user_limits(found: dict[str, Any]) -> UserLimits:
    """A person's limits, in the order of the catalogue."""
    return UserLimits(
        user_id=found["user_id"],
        plan=found["plan"],
        limits=_in_order(found["limits"]),
        effective={name: found["effective"].get(name) for name in RULES},
        updated_at=found["updated_at"],
    )


def plan_view(found: dict[str, Any]) -> PlanView:
    """A plan, its limits in the order of the catalogue."""
    return PlanView(plan=found["plan"], limits=_in_order(found["limits"]), users=found["users"])


def rule_views(defaults: Limits) -> list[RuleView]:
    """The catalogue, with what holds for everybody."""
    return [
        RuleView(
            name=rule.name,
            meaning=rule.meaning,
            unit=rule.unit,
            least=rule.least,
            most=rule.most,
            whole=rule.whole,
            may_be_unlimited=rule.may_be_unlimited,
            default=defaults.get(rule.name),
        )
        for rule in RULES.values()
    ]


def _in_order(limits: Limits) -> Limits:
    return {name: limits[name] for name in RULES if name in limits}
