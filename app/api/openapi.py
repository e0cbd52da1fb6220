"""The OpenAPI document: bodies that we read ourselves, and every status a route can answer."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from app.api.problems import MEDIA_TYPE, Problem
from app.api.rate_headers import QUOTA_EXCEEDED

if TYPE_CHECKING:
    from fastapi import FastAPI
    from pydantic import BaseModel

_REF = "#/components/schemas/{model}"
_REASONS = {
    400: "The request cannot be understood, or carries more than one identity.",
    401: "No valid identity.",
    403: "A page of another origin asks, the account cannot be used, or only operators may.",
    404: "There is no such thing for this user.",
    409: "The present state contradicts.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    422: "A field cannot be accepted.",
    429: "A limit of the user's is reached, or too many of their requests are under way.",
    499: "The client went away before there was an answer; nobody gets it, it is for the log.",
    500: "An unexpected error; the request id finds its record.",
    502: "Another service, which this is about, has failed.",
    503: "Something that is needed cannot be reached now.",
}
_AT_A_LIMIT = {
    "type": QUOTA_EXCEEDED,
    "title": "Too Many Requests",
    "status": 429,
    "detail": "The tokens of this account are used up for now.",
    "code": "token_budget_exhausted",
    "request_id": "0af7651916cd43dd8448eb211c80319c",
    "violated-policies": ["tokens_per_day"],
}
_LIMIT_HEADERS = {
    "Retry-After": {
        "description": "In how many seconds to try again, where waiting helps.",
        "schema": {"type": "integer"},
    },
    "RateLimit": {
        "description": "What is left of each limit that is named, and when it begins anew. The rate"
        " of requests is told with every answer.",
        "schema": {"type": "string"},
        "example": '"requests_per_minute";r=1199;t=1',
    },
    "RateLimit-Policy": {
        "description": "The limits that `RateLimit` is about.",
        "schema": {"type": "string"},
        "example": '"requests_per_minute";q=1200;w=60',
    },
}
_ALWAYS = (400, 401, 403, 422, 429, 500, 503)

_body_models: dict[str, type[BaseModel]] = {Problem.__name__: Problem}


def body_of(model: type[BaseModel], example: dict[str, Any]) -> dict[str, Any]:
    """Document a JSON body that a dependency reads (for ``openapi_extra``)."""
    _body_models[model.__name__] = model
    schema = {"$ref": _REF.format(model=model.__name__)}
    content = {"application/json": {"schema": schema, "example": example}}
    return {"requestBody": {"required": True, "content": content}}


def optional_body_of(model: type[BaseModel]) -> dict[str, Any]:
    """The same, where there need not be one."""
    documented = body_of(model, {})
    documented["requestBody"]["required"] = False
    return documented


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Document the problem documents of a route: those of every route, and these."""
    return {status: _problem(status) for status in sorted({*_ALWAYS, *statuses})}


def public_problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Document the problem documents of a route that asks for no identity."""
    return {status: _problem(status) for status in sorted({500, *statuses})}


def _problem(status: int) -> dict[str, Any]:
    content: dict[str, Any] = {"schema": {"$ref": _REF.format(model=Problem.__name__)}}
    described: dict[str, Any] = {"description": _REASONS[status], "content": {MEDIA_TYPE: content}}
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        content["example"] = _AT_A_LIMIT
        described["headers"] = _LIMIT_HEADERS
    return described


def describe(app: FastAPI) -> dict[str, Any]:
    """Build the document once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, summary=app.summary, routes=app.routes
        )
        _, definitions = models_json_schema(
            [(model, "validation") for model in _body_models.values()],
            ref_template=_REF,
        )
        components = document.setdefault("components", {})
        components.setdefault("schemas", {}).update(definitions.get("$defs", {}))
        components["securitySchemes"] = {
            "assertion": {
                "type": "http",
                "scheme": "bearer",
                "description": "The gateway's signed assertion.",
            }
        }
        app.openapi_schema = document
    return app.openapi_schema
