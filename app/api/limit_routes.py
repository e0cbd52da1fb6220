"""What one may use, and what one has used."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from app.api.answers import json_answer
from app.api.dependencies import IN_TURN, PrincipalDep, ServicesDep
from app.api.limit_schemas import LimitsView, UsageQuery, UsageReportView
from app.api.openapi import problems
from app.api.own_limits import own_limits
from tenancy.scheduler.usage import read_usage

router = APIRouter(tags=["limits"], dependencies=[IN_TURN])


@router.get(
    "/me/limits",
    operation_id="get_own_limits",
    response_model=LimitsView,
    responses=problems(),
)
async def get_own_limits(principal: PrincipalDep, services: ServicesDep) -> Response:
    """Say what one may use, what is used of it, and where one's runs stand in the queue."""
    document, _ = await own_limits(services, principal)
    return json_answer(document)


@router.get(
    "/me/usage",
    operation_id="get_own_usage",
    response_model=UsageReportView,
    responses=problems(),
)
async def get_own_usage(
    principal: PrincipalDep, services: ServicesDep, query: Annotated[UsageQuery, Query()]
) -> Response:
    """Say what one has used in each hour or day, by default of the last 24 hours."""
    report = await read_usage(services.database, principal, query.begin, query.end, query.bucket)
    return json_answer(
        {
            "from": report.first,
            "to": report.last,
            "bucket": query.bucket,
            "buckets": [
                {"start": bucket.start, **asdict(bucket.usage)} for bucket in report.buckets
            ],
            "total": asdict(report.total),
        }
    )
