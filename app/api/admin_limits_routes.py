"""For operators: plans, and what each person may use."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Path
from pydantic import Field
from starlette.responses import Response

from app.admin.limits_views import PLAN_NAME, PlansView, PlanView, UserLimits
from app.api.answers import json_answer
from app.api.dependencies import FOR_OPERATORS, IN_TURN, ActDep, ServicesDep
from app.api.json_body import json_body
from app.api.openapi import body_of, problems
from app.api.schemas import StrictModel
from app.runs.tail import limits_key
from tenancy.principal import UserId

router = APIRouter(prefix="/admin", tags=["operators"], dependencies=[FOR_OPERATORS, IN_TURN])

PlanName = Annotated[str, Path(pattern=PLAN_NAME)]
Values = Annotated[
    dict[str, Any],
    Field(
        description="Numbers by the names that `GET /admin/plans` lists; null is no limit.",
        json_schema_extra={"additionalProperties": {"type": ["number", "null"]}},
    ),
]


class LimitsOfUser(StrictModel):
    """What is set for one person, in place of what was."""

    plan: str | None = Field(description="Null is the plan `default`, if there is one.")
    limits: Values


class LimitsOfPlan(StrictModel):
    """What a plan holds, in place of what it held."""

    limits: Values


@router.get(
    "/users/{user_id}/limits",
    operation_id="admin_user_limits",
    response_model=UserLimits,
    responses=problems(404),
)
async def read_user_limits(user_id: UUID, services: ServicesDep) -> Response:
    """Say what a person may use: what was set for them, and what is in force."""
    return json_answer((await services.scheduler_admin.limits_of(user_id)).model_dump(mode="json"))


@router.put(
    "/users/{user_id}/limits",
    operation_id="admin_set_user_limits",
    response_model=UserLimits,
    responses=problems(404, 413, 415),
    openapi_extra=body_of(LimitsOfUser, {"plan": "gold", "limits": {"weight": 2, "running": 8}}),
)
async def set_user_limits(
    user_id: UUID,
    services: ServicesDep,
    act: ActDep,
    body: Annotated[LimitsOfUser, Depends(json_body(LimitsOfUser))],
) -> Response:
    """Set a person's plan and limits, in place of what was set. In force at once."""
    limits = await services.scheduler_admin.set_limits(user_id, body.plan, body.limits, act)
    services.announcer.run_changed(limits_key(UserId(user_id)))
    return json_answer(limits.model_dump(mode="json"))


@router.delete(
    "/users/{user_id}/limits",
    operation_id="admin_clear_user_limits",
    response_model=UserLimits,
    responses=problems(404),
)
async def clear_user_limits(user_id: UUID, services: ServicesDep, act: ActDep) -> Response:
    """Take away what was set for a person, and say what is in force now."""
    limits = await services.scheduler_admin.clear_limits(user_id, act)
    services.announcer.run_changed(limits_key(UserId(user_id)))
    return json_answer(limits.model_dump(mode="json"))


@router.get("/plans", operation_id="admin_plans", response_model=PlansView, responses=problems())
async def read_plans(services: ServicesDep) -> Response:
    """Every plan, how many people have it, and which limits there are."""
    return json_answer((await services.scheduler_admin.plans()).model_dump(mode="json"))


@router.put(
    "/plans/{plan}",
    operation_id="admin_set_plan",
    response_model=PlanView,
    responses=problems(413, 415),
    openapi_extra=body_of(LimitsOfPlan, {"limits": {"weight": 4, "tokens_per_day": 1_000_000}}),
)
async def set_plan(
    plan: PlanName,
    services: ServicesDep,
    act: ActDep,
    body: Annotated[LimitsOfPlan, Depends(json_body(LimitsOfPlan))],
) -> Response:
    """Make a plan, or change it for everybody who has it. In force at once.

    The plan `default` is everybody's who has no other.
    """
    changed = await services.scheduler_admin.set_plan(plan, body.limits, act)
    return json_answer(changed.model_dump(mode="json"))


@router.delete(
    "/plans/{plan}",
    operation_id="admin_delete_plan",
    status_code=204,
    response_class=Response,
    responses=problems(404, 409),
)
async def delete_plan(plan: PlanName, services: ServicesDep, act: ActDep) -> Response:
    """Delete a plan that nobody has."""
    await services.scheduler_admin.delete_plan(plan, act)
    return Response(status_code=204)
