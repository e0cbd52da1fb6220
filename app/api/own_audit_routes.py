"""What was done with one's own account: by oneself, by the service, and by operators."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from app.api.answers import json_answer
from app.api.dependencies import IN_TURN, PrincipalDep, ServicesDep
from app.api.openapi import problems
from app.api.schemas import QueryModel
from tenancy.own_record import read_own_record

router = APIRouter(tags=["service"], dependencies=[IN_TURN])

MOST_NUMBER = 2**63 - 1
"""Entries are numbered in 64 bits."""


class OwnRecordQuery(QueryModel):
    """Which of what is on record."""

    limit: int = Field(100, ge=1, le=1000)
    before: int | None = Field(
        None, ge=1, le=MOST_NUMBER, description="Where the last answer's `X-Pagination-Next` says."
    )


class OwnRecordEntry(BaseModel):
    """One thing that was done, asked, decided or refused."""

    audit_id: int
    at: datetime
    actor: Literal["person", "service", "operator"] = Field(description="Who did it.")
    action: str
    route: str | None = Field(description="What an operator called.")
    object: str | None = Field(description="The plan or run that it was about.")
    thread_id: UUID | None
    run_id: UUID | None
    approval_id: UUID | None
    server: str | None
    tool: str | None
    decision: str | None
    why: str | None = Field(description="A code.")
    reason: str | None = Field(description="What one wrote oneself.")
    expires_at: datetime | None


@router.get(
    "/me/audit",
    operation_id="get_own_audit",
    response_model=list[OwnRecordEntry],
    responses=problems(),
)
async def get_own_audit(
    principal: PrincipalDep, services: ServicesDep, query: Annotated[OwnRecordQuery, Query()]
) -> Response:
    """What was done with one's account, the newest first."""
    entries = await read_own_record(services.database, principal, query.before, query.limit)
    more = len(entries) == query.limit
    headers = {"X-Pagination-Next": str(entries[-1]["audit_id"])} if more else {}
    return json_answer(entries, headers=headers)
