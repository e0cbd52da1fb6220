"""Threads: create, read, change, delete, search, count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from uuid import UUID, uuid4

from fastapi import APIRouter, Depends, Header, Query
from starlette.responses import Response

from app.api.answers import bounded_list, json_answer, json_bytes_answer
from app.api.cancelling import announce_deleted
from app.api.dependencies import IN_TURN, PrincipalDep, ServicesDep
from app.api.idempotency import IdempotencyDep
from app.api.json_body import json_body
from app.api.openapi import body_of, problems
from app.api.thread_schemas import (
    MOST_WITH_VALUES,
    ThreadCount,
    ThreadCreate,
    ThreadPatch,
    ThreadQuery,
    ThreadSearch,
    ThreadView,
)
from app.api.thread_views import (
    thread_json,
    thread_with_values,
    threads_alone,
    threads_with_values,
    ttl_json,
)
from app.runs import threads
from app.runs.deletion import delete_thread as delete_rows
from app.runs.idempotency import take_key
from app.runs.states import ThreadStatus
from app.runs.threads import ThreadFilter
from tenancy.errors import InvalidInput

if TYPE_CHECKING:
    from app.api.services import Services
    from app.runs.runs import IdempotencyKey
    from tenancy.principal import Principal

router = APIRouter(tags=["threads"], dependencies=[IN_TURN])


@router.post(
    "/threads",
    operation_id="create_thread",
    response_model=ThreadView,
    responses=problems(404, 409, 413, 415),
    openapi_extra=body_of(ThreadCreate, {"metadata": {"topic": "travel"}}),
)
async def create_thread(
    principal: PrincipalDep,
    services: ServicesDep,
    idempotency: IdempotencyDep,
    body: Annotated[ThreadCreate, Depends(json_body(ThreadCreate))],
) -> Response:
    """Create a thread; with `if_exists: do_nothing`, one that has the id is answered as it is.

    Sent again with the same `Idempotency-Key`, it answers the thread that was made the first time.
    """
    thread, is_new = await _create_or_find(services, principal, body, idempotency.with_body())
    if is_new and body.if_exists != "do_nothing":
        return json_answer({**thread_json(thread), "values": None, "interrupts": {}})
    return json_answer(await thread_with_values(services.history, principal, thread))


@router.get(
    "/threads/{thread_id}",
    operation_id="get_thread",
    response_model=ThreadView,
    responses=problems(404),
)
async def get_thread(
    thread_id: UUID,
    principal: PrincipalDep,
    services: ServicesDep,
    query: Annotated[ThreadQuery, Query()],
) -> Response:
    """Return a thread with its newest values."""
    async with services.database.reading(principal) as tx:
        thread = await threads.get_thread(tx, thread_id)
    view = await thread_with_values(services.history, principal, thread)
    return json_answer({**view, "ttl": ttl_json(thread)} if query.include else view)


@router.patch(
    "/threads/{thread_id}",
    operation_id="update_thread",
    response_model=ThreadView,
    responses={
        204: {"description": "Changed; `Prefer: return=minimal` was asked for."},
        **problems(404, 413, 415),
    },
    openapi_extra=body_of(ThreadPatch, {"metadata": {"topic": "food"}}),
)
async def update_thread(
    thread_id: UUID,
    principal: PrincipalDep,
    services: ServicesDep,
    body: Annotated[ThreadPatch, Depends(json_body(ThreadPatch))],
    prefer: Annotated[str | None, Header(description="`return=minimal`")] = None,
) -> Response:
    """Merge metadata into a thread's own, or say how long it is to be kept."""
    async with services.database.writing(principal) as tx:
        thread = await threads.update_thread(
            tx, thread_id, metadata=body.metadata or {}, ttl_minutes=body.ttl_minutes
        )
    if prefer is not None and "return=minimal" in prefer.replace(" ", ""):
        return Response(status_code=204)
    return json_answer(await thread_with_values(services.history, principal, thread))


@router.delete(
    "/threads/{thread_id}",
    operation_id="delete_thread",
    status_code=204,
    response_class=Response,
    responses=problems(404),
)
async def delete_thread(
    thread_id: UUID, principal: PrincipalDep, services: ServicesDep
) -> Response:
    """Delete a thread with everything in it; a run under way stops.

    It is gone at once. Until all rows of a large one are deleted too, its id cannot be used again.
    """
    async with services.database.writing(principal) as tx:
        deleted = await delete_rows(tx, thread_id)
    announce_deleted(services, principal, thread_id, deleted)
    return Response(status_code=204)


@router.post(
    "/threads/search",
    operation_id="search_threads",
    response_model=list[ThreadView],
    responses=problems(413, 415),
    openapi_extra=body_of(ThreadSearch, {"limit": 10, "select": ["thread_id", "title", "status"]}),
)
async def search_threads(
    principal: PrincipalDep,
    services: ServicesDep,
    body: Annotated[ThreadSearch, Depends(json_body(ThreadSearch))],
) -> Response:
    """List threads, the one that changed last first unless asked otherwise."""
    fields = frozenset(body.select) if body.select else None
    with_values = fields is None or bool(fields & {"values", "interrupts"})
    if with_values and body.limit > MOST_WITH_VALUES:
        raise InvalidInput(
            f"With values, at most {MOST_WITH_VALUES} threads at once: `select` what you need."
        )
    wanted = _filter(body, tuple(body.ids) if body.ids is not None else None)
    async with services.database.reading(principal) as tx:
        page = await threads.search_threads(
            tx,
            wanted,
            limit=body.limit,
            offset=body.offset,
            sort_by=body.sort_by or "updated_at",
            sort_order=body.sort_order or "desc",
        )
        total = await threads.count_threads(tx, wanted)
    views = (
        threads_with_values(services.history, principal, page)
        if with_values
        else threads_alone(page)
    )
    listed, count = await bounded_list(
        principal.user_id,
        (
            {name: view[name] for name in view if fields is None or name in fields}
            async for view in views
        ),
    )
    headers = {"X-Pagination-Total": str(total)}
    if body.offset + count < total:
        headers["X-Pagination-Next"] = str(body.offset + count)
    return json_bytes_answer(listed, headers=headers)


@router.post(
    "/threads/count",
    operation_id="count_threads",
    response_model=int,
    responses=problems(413, 415),
    openapi_extra=body_of(ThreadCount, {"status": "idle"}),
)
async def count_threads(
    principal: PrincipalDep,
    services: ServicesDep,
    body: Annotated[ThreadCount, Depends(json_body(ThreadCount))],
) -> Response:
    """Count threads."""
    async with services.database.reading(principal) as tx:
        return json_answer(await threads.count_threads(tx, _filter(body)))


async def _create_or_find(
    services: Services,
    principal: Principal,
    body: ThreadCreate,
    key: IdempotencyKey | None,
) -> tuple[threads.Thread, bool]:
    """The thread, and whether this request is the first that asks for it.

    A request that came before had the same body, and so asked for the same id, or got the one that
    its key stands for.
    """
    candidate = uuid4()
    async with services.database.writing(principal) as tx:
        taken = candidate if key is None else await take_key(tx, key, candidate)
        thread_id = body.thread_id or taken
        if taken != candidate:
            return await threads.get_thread(tx, thread_id), False
        return await threads.create_thread(
            tx,
            thread_id=thread_id,
            metadata=body.metadata,
            if_exists=body.if_exists or "raise",
            ttl_minutes=body.ttl_minutes,
            limits=services.limits,
        ), True


def _filter(body: ThreadCount, ids: tuple[UUID, ...] | None = None) -> ThreadFilter:
    status = ThreadStatus(body.status) if body.status else None
    return ThreadFilter(metadata=body.metadata or {}, status=status, ids=ids)
