"""The one table from error to status, and the handlers that use it."""

from __future__ import annotations

import math
import re
from http import HTTPStatus
from typing import TYPE_CHECKING

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from app.api.approval_views import approval_json
from app.api.context import context_of
from app.api.disconnect import ClientGone
from app.api.problems import problem_response
from app.api.rate_headers import QUOTA_EXCEEDED
from app.api.refusals import (
    BodyTooLarge,
    ForeignOrigin,
    InvalidFields,
    InvalidSearch,
    MalformedRequest,
    UnsupportedMediaType,
)
from app.mentions.checking import MentionNotFound
from app.runs.approvals import ApprovalClosed
from tenancy import errors as domain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastapi import FastAPI
    from starlette.requests import Request
    from starlette.responses import Response

STATUSES: dict[type[domain.StoaError], int] = {
    MalformedRequest: 400,
    domain.AmbiguousIdentity: 400,
    domain.IdentityRejected: 401,
    ForeignOrigin: 403,
    domain.Forbidden: 403,
    domain.UserUnavailable: 403,
    domain.NotFound: 404,
    domain.Conflict: 409,
    BodyTooLarge: 413,
    UnsupportedMediaType: 415,
    domain.InvalidInput: 422,
    domain.LimitReached: 429,
    domain.TooManyRequests: 429,
    ClientGone: 499,
    domain.UpstreamFailed: 502,
    domain.ServiceUnavailable: 503,
    domain.IdentityUnavailable: 503,
}
"""An error has the status of its nearest class in here; one without any is a fault of ours."""

_FIELD = re.compile(r"[A-Za-z][A-Za-z_-]{0,39}")
_MOST_FIELD_ERRORS = 20
"""A body of nothing but faults is not to be answered with a larger one."""

_HEADERS: dict[int, dict[str, str]] = {
    401: {"WWW-Authenticate": "Bearer"},
    429: {"Retry-After": "5"},
    503: {"Retry-After": "5"},
}


def status_of(error: domain.StoaError) -> int | None:
    """The status of an error, by its nearest class in the table."""
    return next((STATUSES[cls] for cls in type(error).__mro__ if cls in STATUSES), None)


def install_error_handlers(app: FastAPI) -> None:
    """Answer every expected error with a problem document; others reach the request boundary."""
    app.add_exception_handler(domain.StoaError, _domain_error)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(HTTPException, _http_error)


def field_errors(
    errors: Sequence[dict[str, object]], *, prefix: tuple[str, ...] = ()
) -> list[dict[str, object]]:
    """What a validator found first, without the values it found."""
    return [
        {"loc": [*prefix, *_parts(error["loc"])], "msg": _message(error)}
        for error in errors[:_MOST_FIELD_ERRORS]
    ]


def _parts(loc: object) -> list[str | int]:
    """Where it stands. A key that a client made up is repeated only if it looks like a field."""
    parts = loc if isinstance(loc, tuple | list) else (loc,)
    return [part if isinstance(part, int) or _FIELD.fullmatch(str(part)) else "…" for part in parts]


def _message(error: dict[str, object]) -> str:
    """What is wrong. Pydantic's words about UUIDs and dates repeat characters of the value."""
    kind = str(error["type"])
    return f"Not valid: {kind}." if kind.endswith("_parsing") else str(error["msg"])


async def _domain_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, domain.StoaError):
        raise error
    status = status_of(error)
    if status is None:
        raise error
    if isinstance(error, domain.LimitReached):
        return _limit_reached(request, status, error)
    return problem_response(
        request.scope,
        status,
        error.code,
        str(error),
        more=_members(error),
        headers=_HEADERS.get(status),
    )


def _members(error: domain.StoaError) -> dict[str, object] | None:
    """What else a problem says."""
    if isinstance(error, InvalidFields | InvalidSearch | MentionNotFound):
        return {"errors": error.errors}
    if isinstance(error, ApprovalClosed):
        return {"approval": approval_json(error.approval)}
    return None


def _limit_reached(request: Request, status: int, error: domain.LimitReached) -> Response:
    """Name the limit; where waiting helps, also say how long."""
    context_of(request.scope).refusal = error
    wait = error.retry_seconds
    return problem_response(
        request.scope,
        status,
        error.code,
        str(error),
        kind=QUOTA_EXCEEDED,
        more={"violated-policies": [error.limit]},
        headers={} if wait is None else {"Retry-After": str(max(1, math.ceil(wait)))},
    )


async def _invalid_request(request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    return await _domain_error(request, InvalidFields(field_errors(error.errors())))


async def _http_error(request: Request, error: Exception) -> Response:
    """The router's own refusals: no such path, no such method."""
    if not isinstance(error, HTTPException):
        raise error
    status = HTTPStatus(error.status_code)
    return problem_response(
        request.scope,
        status.value,
        status.name.lower(),
        f"{status.description or status.phrase}.".replace("..", "."),
        headers=error.headers,
    )
