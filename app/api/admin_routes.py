"""For operators: who waits and why, pools, workers, what was used, a restart. Nobody's words."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from app.admin.queue_views import PoolView, QueueView
from app.admin.usage import UsageOfAll
from app.admin.workers_views import WorkerView
from app.api.answers import json_answer
from app.api.dependencies import FOR_OPERATORS, IN_TURN, ActDep, ServicesDep
from app.api.json_body import json_body
from app.api.limit_schemas import UsageQuery
from app.api.openapi import body_of, problems
from app.api.schemas import QueryModel, StrictModel
from app.runtime.restart import NoRestart, ask_for_restart

router = APIRouter(prefix="/admin", tags=["operators"], dependencies=[FOR_OPERATORS, IN_TURN])

MOST_CAPACITY = 10_000


class QueueQuery(QueryModel):
    """How much to show."""

    limit: int = Field(100, ge=1, le=1000, description="Of people, and of things that wait.")


class UsageOfAllQuery(UsageQuery):
    """Which usage: of everybody or one person, by the hour or the day (UTC)."""

    user_id: UUID | None = None
    limit: int = Field(100, ge=1, le=1000, description="Of people.")


class PoolsView(BaseModel):
    """Every pool there is."""

    pools: list[PoolView]


class PoolChange(StrictModel):
    """What to change of a pool."""

    capacity: int | None = Field(
        ge=0,
        le=MOST_CAPACITY,
        description="Calls at once; 0 suspends the pool, null is what the settings say.",
    )


class RestartAsked(BaseModel):
    """The deployment has accepted it; when it is done, the parts of the service tell."""

    accepted: Literal[True]


@router.post(
    "/restart",
    operation_id="admin_restart",
    status_code=202,
    response_model=RestartAsked,
    responses=problems(404, 502),
)
async def restart(services: ServicesDep, act: ActDep) -> Response:
    """Have the deployment restart the service, where it offers that."""
    hook = services.settings.restart_url
    if hook is None:
        raise NoRestart
    await services.acts.did(act, "restart_asked")
    await ask_for_restart(hook)
    return json_answer({"accepted": True}, status=202)


@router.get("/queue", operation_id="admin_queue", response_model=QueueView, responses=problems())
async def read_queue(services: ServicesDep, query: Annotated[QueueQuery, Query()]) -> Response:
    """Say who waits, how long and why: models, pools, runs, people."""
    queue = await services.scheduler_admin.queue(query.limit)
    return json_answer(queue.model_dump(mode="json"))


@router.get("/pools", operation_id="admin_pools", response_model=PoolsView, responses=problems())
async def read_pools(services: ServicesDep) -> Response:
    """Every pool, with its seats and how it is doing."""
    pools = await services.scheduler_admin.pools()
    return json_answer({"pools": [pool.model_dump(mode="json") for pool in pools]})


@router.patch(
    "/pools/{pool}",
    operation_id="admin_change_pool",
    response_model=PoolView,
    responses=problems(404, 413, 415),
    openapi_extra=body_of(PoolChange, {"capacity": 4}),
)
async def change_pool(
    pool: str,
    services: ServicesDep,
    act: ActDep,
    body: Annotated[PoolChange, Depends(json_body(PoolChange))],
) -> Response:
    """Set how many calls a pool takes at once, while it runs.

    More seats are given out at once; with fewer, calls in flight end as they would.
    """
    changed = await services.scheduler_admin.set_capacity(pool, body.capacity, act)
    return json_answer(changed.model_dump(mode="json"))


@router.get(
    "/workers",
    operation_id="admin_workers",
    response_model=list[WorkerView],
    responses=problems(),
)
async def read_workers(services: ServicesDep) -> Response:
    """Every worker that has not left in order, with what it holds; the eldest first."""
    workers = await services.scheduler_admin.workers()
    return json_answer([worker.model_dump(mode="json") for worker in workers])


@router.get("/usage", operation_id="admin_usage", response_model=UsageOfAll, responses=problems())
async def read_usage(services: ServicesDep, query: Annotated[UsageOfAllQuery, Query()]) -> Response:
    """Say what was used: over time, in total, and by whom, most tokens first.

    The stretch is widened to whole hours, or days; it has at most 1000 of them.
    """
    usage = await services.usage_admin.usage(
        query.begin, query.end, query.bucket, query.user_id, query.limit
    )
    return json_answer(usage.model_dump(mode="json", by_alias=True))
