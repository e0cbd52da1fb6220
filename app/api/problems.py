"""Problem documents (RFC 9457): what every refusal looks like."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from app.api.approval_schemas import ApprovalView
from app.api.context import context_of
from app.runs.wire import to_json

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

MEDIA_TYPE = "application/problem+json"
_UNREGISTERED = {499: "Client Closed Request"}
"""Phrases of statuses that no registry has."""


class FieldError(BaseModel):
    """Which part of the request cannot be accepted, and why."""

    loc: list[str | int]
    msg: str


class Problem(BaseModel):
    """Why a request was refused, for a person (`detail`) and for a program (`code`)."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "type": "about:blank",
                "title": "Not Found",
                "status": 404,
                "detail": "There is no such thread.",
                "code": "thread_not_found",
                "request_id": "0af7651916cd43dd8448eb211c80319c",
            }
        }
    )

    type: str
    title: str
    status: int
    detail: str
    code: str = Field(description="Stable; says what happened to a program.")
    request_id: str = Field(description="Also in the header `X-Request-Id`, and in our logs.")
    errors: list[FieldError] | None = Field(
        None, description="Only with status 422, and 400 where a route says so."
    )
    violated_policies: list[str] | None = Field(
        None,
        alias="violated-policies",
        description="Only with status 429: the limits that were reached, as `/me/limits` has them.",
    )
    approval: ApprovalView | None = Field(
        None, description="Only with `approval_closed`: the decision that stands."
    )


def problem_response(
    scope: MutableMapping[str, Any],
    status: int,
    code: str,
    detail: str,
    *,
    kind: str = "about:blank",
    more: Mapping[str, object] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Make the response to a refused request; ``more`` are members beside those of each."""
    document: dict[str, object] = {
        "type": kind,
        "title": _UNREGISTERED.get(status) or HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "request_id": context_of(scope).request_id,
        **(more or {}),
    }
    return Response(to_json(document), status, dict(headers or {}), MEDIA_TYPE)
