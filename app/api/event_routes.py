"""A person's own feed."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from app.api import sse
from app.api.dependencies import IN_TURN, OpenStreamDep, PrincipalDep, ServicesDep
from app.api.live import LiveResponse
from app.api.openapi import problems
from app.api.own_events import OwnEvents

router = APIRouter(tags=["limits"], dependencies=[IN_TURN])

EVENTS = ["limits", "runtime", "run", "approval", "connection"]
_SCHEMA = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "event": {"type": "string", "enum": EVENTS},
        "data": {
            "type": "string",
            "description": "One line of JSON. Of `limits`: what `/me/limits` answers. Of `runtime`:"
            " what `/runtime` answers, whole: a part that it does not name is no more, and one of a"
            " lower version than is known is older. Of `run`:"
            " `run_id`, `thread_id`, `state`, `status`, `updated_at`. Of `approval`: what"
            " `/approvals/{approval_id}` answers, or `approval_id` and `removed: true`. Of"
            " `connection`: what `/connections/{server}` answers, or `server` and `removed: true`.",
        },
    },
}
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "One's limits, and which parts of the service can do their work, at once"
        " and whenever they have changed, the limits at most once a second; and each run, question"
        " to the person, and connection to a tool server, that has changed. It has no ids: who"
        " reads it again begins with the limits and the parts as they are. While the database is"
        " away only the parts are told; then the stream ends, and is to be read again.",
        "content": {
            sse.MEDIA_TYPE: {
                "schema": _SCHEMA,
                "example": 'event: run\ndata: {"run_id":"6f1c1f0e-6f0f-4f8a-8f3b-0d4e0a8f6a51",'
                '"thread_id":"0b0e4b9c-6a39-4b8c-9d51-7a1e5a1c9f10","state":"running",'
                '"status":"running","updated_at":"2026-03-01T10:15:00.000000+00:00"}\n\n',
            }
        },
    }
}


@router.get(
    "/events",
    operation_id="follow_own_events",
    response_class=Response,
    responses={**_EVENTS, **problems()},
)
async def follow_own_events(
    principal: PrincipalDep, services: ServicesDep, _slot: OpenStreamDep
) -> Response:
    """Stream the service's parts, one's limits, runs, approvals and connections, as they change."""
    return LiveResponse(
        OwnEvents(services, principal).frames(),
        media_type=sse.MEDIA_TYPE,
        beat=sse.HEARTBEAT,
        expires_at=principal.identity.expires_at,
        closing=services.streams.closing_for(principal.user_id),
        headers={"X-Accel-Buffering": "no"},
    )
