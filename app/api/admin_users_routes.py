"""For operators: people in numbers, and whether they may use the service."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from app.admin.users_views import PeopleOrder, UserDetail, UserState, UserSummary
from app.api.answers import json_answer
from app.api.dependencies import FOR_OPERATORS, IN_TURN, ActDep, ServicesDep
from app.api.openapi import problems
from app.api.schemas import QueryModel

router = APIRouter(prefix="/admin", tags=["operators"], dependencies=[FOR_OPERATORS, IN_TURN])

MOST_OFFSET = 10_000_000


class UsersQuery(QueryModel):
    """Which people, and in which order."""

    state: UserState | None = None
    sort: PeopleOrder = Field("created_at", description="The latest first.")
    limit: int = Field(50, ge=1, le=1000)
    offset: int = Field(0, ge=0, le=MOST_OFFSET)


@router.get(
    "/users",
    operation_id="admin_users",
    response_model=list[UserSummary],
    responses=problems(),
)
async def read_users(services: ServicesDep, query: Annotated[UsersQuery, Query()]) -> Response:
    """List people: how much there is of them, and since when. No name, no address, no title."""
    page = await services.users_admin.users(query.state, query.sort, query.limit, query.offset)
    headers = {"X-Pagination-Total": str(page.total)}
    if query.offset + len(page.users) < page.total and page.users:
        headers["X-Pagination-Next"] = str(query.offset + len(page.users))
    return json_answer([user.model_dump(mode="json") for user in page.users], headers=headers)


@router.get(
    "/users/{user_id}",
    operation_id="admin_user",
    response_model=UserDetail,
    responses=problems(404),
)
async def read_user(user_id: UUID, services: ServicesDep) -> Response:
    """Say of one person what is kept, what they may use, and what they used."""
    return json_answer((await services.users_admin.user(user_id)).model_dump(mode="json"))


@router.post(
    "/users/{user_id}/suspend",
    operation_id="admin_suspend_user",
    response_model=UserDetail,
    responses=problems(404, 409),
)
async def suspend_user(user_id: UUID, services: ServicesDep, act: ActDep) -> Response:
    """Let a person use the service no more.

    Nothing of theirs is lost: what runs is put back and goes on, and what waits stays, until they
    are resumed. Nobody suspends themselves.
    """
    return json_answer((await services.users_admin.suspend(user_id, act)).model_dump(mode="json"))


@router.post(
    "/users/{user_id}/resume",
    operation_id="admin_resume_user",
    response_model=UserDetail,
    responses=problems(404, 409),
)
async def resume_user(user_id: UUID, services: ServicesDep, act: ActDep) -> Response:
    """Let a person who was suspended use the service again."""
    return json_answer((await services.users_admin.resume(user_id, act)).model_dump(mode="json"))
