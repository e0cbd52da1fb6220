"""For operators: what was done with people's accounts, and by whom. Nothing that anybody wrote."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, Field
from starlette.responses import Response

from app.admin.audit import MOST_NUMBER, operator_named
from app.admin.audit_views import RecordEntry
from app.api.answers import json_answer
from app.api.dependencies import FOR_OPERATORS, IN_TURN, ServicesDep
from app.api.openapi import problems
from app.api.schemas import QueryModel

router = APIRouter(prefix="/admin", tags=["operators"], dependencies=[FOR_OPERATORS, IN_TURN])


class RecordQuery(QueryModel):
    """Which of what is on record."""

    user_id: UUID | None = Field(None, description="To whom it was done.")
    by: str | None = Field(
        None, max_length=200, description="An operator's id, or the name of an account."
    )
    action: str | None = Field(None, max_length=100)
    begin: AwareDatetime | None = Field(None, alias="from")
    end: AwareDatetime | None = Field(None, alias="to")
    limit: int = Field(100, ge=1, le=1000)
    cursor: int | None = Field(
        None, ge=1, le=MOST_NUMBER, description="Where the last answer's `X-Pagination-Next` says."
    )


@router.get(
    "/audit",
    operation_id="admin_audit",
    response_model=list[RecordEntry],
    responses=problems(),
)
async def read_audit(services: ServicesDep, query: Annotated[RecordQuery, Query()]) -> Response:
    """What is on record, the newest first.

    Of somebody who was erased, the reference is left, and nobody knows any more whose it was.
    """
    entries = await services.audit_admin.entries(
        user_id=query.user_id,
        by=None if query.by is None else operator_named(query.by),
        action=query.action,
        begin=query.begin,
        end=query.end,
        before=query.cursor,
        limit=query.limit,
    )
    more = len(entries) == query.limit
    headers = {"X-Pagination-Next": str(entries[-1].audit_id)} if more else {}
    return json_answer([entry.model_dump(mode="json") for entry in entries], headers=headers)
