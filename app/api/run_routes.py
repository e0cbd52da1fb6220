"""Runs: accept, wait, list, read, join."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Query
from starlette.responses import Response

from app.api import sse
from app.api.accepting import accept
from app.api.answers import bounded_list, json_answer, json_bytes_answer
from app.api.cancelling import announce_deleted
from app.api.dependencies import IN_TURN, LimitsDep, OpenStreamDep, PrincipalDep, ServicesDep
from app.api.following import run_location, stream_run, wait_for_run
from app.api.frames import Wanted
from app.api.idempotency import IdempotencyDep
from app.api.json_body import json_body
from app.api.openapi import body_of, problems
from app.api.run_schemas import JoinQuery, RunCreate, RunListQuery, RunView, StreamQuery
from app.api.run_views import run_json
from app.runs import deletion, runs
from app.runs.log_position import last_seq
from app.runs.states import states_of
from tenancy.errors import InvalidInput, RunNotFound

if TYPE_CHECKING:
    from app.runs.runs import Run
    from tenancy.database.tenant import TenantRead

router = APIRouter(tags=["runs"], dependencies=[IN_TURN])

_EXAMPLE = {
    "assistant_id": "agent",
    "input": {"messages": [{"type": "human", "content": "Hello"}]},
    "stream_mode": ["values", "messages-tuple"],
}
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The run's events, from the first to its end.",
        "content": {sse.MEDIA_TYPE: {"schema": sse.EVENT_SCHEMA}},
    }
}
_VALUES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The run's final values; or `__error__` with a code and a message.",
        "content": {"application/json": {"schema": {}}},
    }
}
RunBody = Annotated[RunCreate, Depends(json_body(RunCreate, holds_input=True))]


@router.post(
    "/threads/{thread_id}/runs",
    operation_id="create_run",
    response_model=RunView,
    responses=problems(404, 409, 413, 415),
    openapi_extra=body_of(RunCreate, _EXAMPLE),
)
async def create_run(
    thread_id: UUID,
    principal: PrincipalDep,
    services: ServicesDep,
    idempotency: IdempotencyDep,
    limits: LimitsDep,
    body: RunBody,
) -> Response:
    """Accept a run: it is stored, and a worker will execute it.

    With a `command`, the thread's run that waits for a person goes on instead.
    """
    if body.ends_with_client:
        raise InvalidInput("`on_disconnect: cancel` is for a run whose client streams or waits.")
    run = (await accept(services, principal, thread_id, body, limits, idempotency.with_body())).run
    return json_answer(run_json(run), headers={"Content-Location": run_location(run)})


@router.post(
    "/threads/{thread_id}/runs/stream",
    operation_id="stream_run",
    response_class=Response,
    responses={**_EVENTS, **problems(404, 409, 413, 415, 429)},
    openapi_extra=body_of(RunCreate, _EXAMPLE),
)
async def create_and_stream_run(
    thread_id: UUID,
    principal: PrincipalDep,
    services: ServicesDep,
    _slot: OpenStreamDep,
    idempotency: IdempotencyDep,
    limits: LimitsDep,
    body: RunBody,
) -> Response:
    """Accept a run and stream its events; with a `command`, what follows the answer."""
    accepted = await accept(services, principal, thread_id, body, limits, idempotency.with_body())
    return stream_run(
        services,
        principal,
        accepted.run,
        accepted.wanted,
        ends_with_client=body.ends_with_client,
    )


@router.post(
    "/threads/{thread_id}/runs/wait",
    operation_id="wait_for_new_run",
    response_class=Response,
    responses={**_VALUES, **problems(404, 409, 413, 415, 429)},
    openapi_extra=body_of(RunCreate, _EXAMPLE),
)
async def create_and_wait_for_run(
    thread_id: UUID,
    principal: PrincipalDep,
    services: ServicesDep,
    _slot: OpenStreamDep,
    idempotency: IdempotencyDep,
    limits: LimitsDep,
    body: RunBody,
) -> Response:
    """Accept a run, or with a `command` an answer to one, and answer with its final values."""
    accepted = await accept(services, principal, thread_id, body, limits, idempotency.with_body())
    return wait_for_run(
        services,
        principal,
        accepted.run,
        after=accepted.wanted.after,
        ends_with_client=body.ends_with_client,
    )


@router.get(
    "/threads/{thread_id}/runs",
    operation_id="list_runs",
    response_model=list[RunView],
    responses=problems(404),
)
async def list_runs(
    thread_id: UUID,
    principal: PrincipalDep,
    services: ServicesDep,
    query: Annotated[RunListQuery, Query()],
) -> Response:
    """List a thread's runs, newest first.

    With their `kwargs`, a list ends early once it is large.
    """
    states = states_of(query.status) if query.status else None
    async with services.database.reading(principal) as tx:
        page = await runs.list_runs(
            tx, thread_id, states=states, limit=query.limit, offset=query.offset
        )
        if "kwargs" in (query.select or ()):
            body, _ = await bounded_list(principal.user_id, _with_requests(tx, page, query.select))
            return json_bytes_answer(body)
    return json_answer([run_json(run, query.select) for run in page])


async def _with_requests(
    tx: TenantRead, page: Iterable[Run], select: Sequence[str] | None
) -> AsyncIterator[dict[str, Any]]:
    for run in page:
        try:
            request = await runs.get_request(tx, run.run_id)
        except RunNotFound:  # deleted since it was listed
            continue
        yield run_json(run, select, request)


@router.get(
    "/threads/{thread_id}/runs/{run_id}",
    operation_id="get_run",
    response_model=RunView,
    responses=problems(404),
)
async def get_run(
    thread_id: UUID, run_id: UUID, principal: PrincipalDep, services: ServicesDep
) -> Response:
    """Return a run."""
    async with services.database.reading(principal) as tx:
        run = await runs.get_run(tx, thread_id, run_id)
    return json_answer(run_json(run))


@router.delete(
    "/threads/{thread_id}/runs/{run_id}",
    operation_id="delete_run",
    status_code=204,
    response_class=Response,
    responses=problems(404),
)
async def delete_run(
    thread_id: UUID, run_id: UUID, principal: PrincipalDep, services: ServicesDep
) -> Response:
    """Delete a run and its stream; if it is under way, it stops. What it wrote to its thread stays.

    To take that back, cancel it with `action=rollback` before.
    """
    async with services.database.writing(principal) as tx:
        deleted = await deletion.delete_run(tx, thread_id, run_id)
    announce_deleted(services, principal, thread_id, deleted)
    return Response(status_code=204)


@router.get(
    "/threads/{thread_id}/runs/{run_id}/join",
    operation_id="join_run",
    response_class=Response,
    responses={**_VALUES, **problems(404)},
)
async def join_run(
    thread_id: UUID,
    run_id: UUID,
    principal: PrincipalDep,
    services: ServicesDep,
    _slot: OpenStreamDep,
    query: Annotated[JoinQuery, Query()],
) -> Response:
    """Wait for a run and answer with its final values."""
    async with services.database.reading(principal) as tx:
        run = await runs.get_run(tx, thread_id, run_id)
    return wait_for_run(services, principal, run, ends_with_client=query.cancel_on_disconnect)


@router.get(
    "/threads/{thread_id}/runs/{run_id}/stream",
    operation_id="join_run_stream",
    response_class=Response,
    responses={**_EVENTS, **problems(404)},
)
async def join_run_stream(
    thread_id: UUID,
    run_id: UUID,
    principal: PrincipalDep,
    services: ServicesDep,
    _slot: OpenStreamDep,
    query: Annotated[StreamQuery, Query()],
    last_event_id: Annotated[
        str | None, Header(description="Read after this event; `-1` or nothing: from the start.")
    ] = None,
) -> Response:
    """Stream a run's events: those stored, and those to come until its end."""
    after = sse.parse_last_event_id(last_event_id)
    async with services.database.reading(principal) as tx:
        run = await runs.get_run(tx, thread_id, run_id)
        last = await last_seq(tx, run_id) if after else None
    return stream_run(
        services,
        principal,
        run,
        Wanted(after, last, query.stream_mode),
        ends_with_client=query.cancel_on_disconnect,
    )
