"""A thread's stream: what its runs stream, one after the other."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Header, Query
from pydantic import BeforeValidator, Field
from starlette.responses import Response

from app.api import sse
from app.api.dependencies import IN_TURN, OpenStreamDep, PrincipalDep, ServicesDep
from app.api.openapi import problems
from app.api.schemas import QueryModel
from app.api.thread_following import (
    ThreadStreamMode,
    events_of,
    parse_position,
    stream_thread,
)

router = APIRouter(tags=["threads"], dependencies=[IN_TURN])

_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The events of the thread's runs, and a `run_done` after each. Its ids are"
        " this stream's own.",
        "content": {sse.MEDIA_TYPE: {"schema": sse.EVENT_SCHEMA}},
    }
}


def _listed(value: object) -> object:
    """Several may come as one, and an absent one as an empty one."""
    if not isinstance(value, list):
        return value
    return [mode for each in value for mode in str(each).split(",") if mode] or ["run_modes"]


def _every_event() -> list[ThreadStreamMode]:
    return ["run_modes"]


class ThreadStreamQuery(QueryModel):
    """What of a thread's stream to read: all events, only starts and ends, or only states."""

    stream_mode: Annotated[
        list[ThreadStreamMode], Field(min_length=1, max_length=3), BeforeValidator(_listed)
    ] = Field(default_factory=_every_event)


@router.get(
    "/threads/{thread_id}/stream",
    operation_id="join_thread_stream",
    response_class=Response,
    responses={**_EVENTS, **problems(404)},
)
async def join_thread_stream(
    thread_id: UUID,
    principal: PrincipalDep,
    services: ServicesDep,
    _slot: OpenStreamDep,
    query: Annotated[ThreadStreamQuery, Query()],
    last_event_id: Annotated[
        str | None,
        Header(
            description="Read after this event; `-1`: from the thread's first run; nothing: from"
            " the run that is open now, or the next."
        ),
    ] = None,
) -> Response:
    """Stream what the thread's runs stream, one after the other, and those that come."""
    position = parse_position(last_event_id)
    return await stream_thread(
        services, principal, thread_id, position, events_of(query.stream_mode)
    )
