"""For operators: erasing somebody, and the erasures that there are, with their receipts."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from app.api.answers import json_answer
from app.api.dependencies import FOR_OPERATORS, IN_TURN, ActDep, ServicesDep
from app.api.erasure_routes import accepted
from app.api.leavers import SAYS_NOTHING, NoFields
from app.api.openapi import optional_body_of, problems
from app.api.schemas import QueryModel
from app.erasure.views import ErasureView, State
from tenancy.principal import UserId

router = APIRouter(prefix="/admin", tags=["operators"], dependencies=[FOR_OPERATORS, IN_TURN])


class ErasuresQuery(QueryModel):
    """Which erasures."""

    state: State | None = None
    limit: int = Field(50, ge=1, le=500)
    offset: int = Field(0, ge=0, le=1_000_000_000)


@router.delete(
    "/users/{user_id}",
    operation_id="admin_erase_user",
    status_code=202,
    response_model=ErasureView,
    responses=problems(404, 413, 415),
    openapi_extra=optional_body_of(NoFields),
    dependencies=[SAYS_NOTHING],
)
async def erase_user(user_id: UUID, services: ServicesDep, act: ActDep) -> Response:
    """Erase a person and everything that is theirs, now and for good.

    It cannot be taken back. Asked again meanwhile, the same erasure is answered.
    """
    erasure = await services.erasures.begin(UserId(user_id), "operator", act)
    services.directory.forget(UserId(user_id))
    return accepted(erasure, f"/admin/erasures/{erasure.erasure_id}")


@router.get(
    "/erasures",
    operation_id="admin_erasures",
    response_model=list[ErasureView],
    responses=problems(),
)
async def list_erasures(
    services: ServicesDep, query: Annotated[ErasuresQuery, Query()]
) -> Response:
    """List erasures, the newest first: under way, and done for as long as their traces are kept."""
    found, total = await services.erasures.list(query.limit, query.offset, query.state)
    headers = {"X-Pagination-Total": str(total)}
    if found and query.offset + len(found) < total:
        headers["X-Pagination-Next"] = str(query.offset + len(found))
    return json_answer([each.model_dump(mode="json") for each in found], headers=headers)


@router.get(
    "/erasures/{erasure_id}",
    operation_id="admin_erasure",
    response_model=ErasureView,
    responses=problems(404),
)
async def read_erasure(erasure_id: UUID, services: ServicesDep) -> Response:
    """Say how far an erasure is, and what came of it."""
    return json_answer((await services.erasures.find(erasure_id)).model_dump(mode="json"))
