"""What is remembered about the person who asks: list, search, add, correct, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from app.api.answers import json_answer
from app.api.dependencies import IN_TURN, PrincipalDep, ServicesDep
from app.api.json_body import json_body
from app.api.memory_schemas import (
    FoundMemoryView,
    MemoryCreate,
    MemoryPage,
    MemoryPatch,
    MemorySearch,
    MemoryView,
)
from app.api.openapi import body_of, problems

if TYPE_CHECKING:
    from app.memory.memories import Memory

router = APIRouter(tags=["memories"], dependencies=[IN_TURN])


@router.get(
    "/memories",
    operation_id="list_memories",
    response_model=list[MemoryView],
    responses=problems(),
)
async def list_memories(
    principal: PrincipalDep, services: ServicesDep, page: Annotated[MemoryPage, Query()]
) -> Response:
    """List memories, the one that changed last first."""
    memories, total = await services.memories.page(principal, limit=page.limit, offset=page.offset)
    headers = {"X-Pagination-Total": str(total)}
    if page.offset + len(memories) < total and memories:
        headers["X-Pagination-Next"] = str(page.offset + len(memories))
    return json_answer([_json(memory) for memory in memories], headers=headers)


@router.post(
    "/memories",
    operation_id="create_memory",
    status_code=201,
    response_model=MemoryView,
    responses={
        200: {"description": "It is remembered already.", "model": MemoryView},
        **problems(413, 415),
    },
    openapi_extra=body_of(MemoryCreate, {"content": "Prefers trains to planes."}),
)
async def create_memory(
    principal: PrincipalDep,
    services: ServicesDep,
    body: Annotated[MemoryCreate, Depends(json_body(MemoryCreate))],
) -> Response:
    """Remember something. What is remembered in the same words already is answered as it is."""
    memory, is_new = await services.memories.add(principal, body.content)
    return json_answer(_json(memory), status=201 if is_new else 200)


@router.post(
    "/memories/search",
    operation_id="search_memories",
    response_model=list[FoundMemoryView],
    responses=problems(413, 415),
    openapi_extra=body_of(MemorySearch, {"query": "How do they like to travel?"}),
)
async def search_memories(
    principal: PrincipalDep,
    services: ServicesDep,
    body: Annotated[MemorySearch, Depends(json_body(MemorySearch))],
) -> Response:
    """Find memories by the words of a question, best first.

    No model is asked: what the agent recalls by sense in a conversation may be more.
    """
    found = await services.memories.find(principal, body.query, body.limit)
    return json_answer([{**_json(each.memory), "score": each.score} for each in found])


@router.delete(
    "/memories",
    operation_id="delete_memories",
    status_code=204,
    response_class=Response,
    responses=problems(),
)
async def delete_memories(principal: PrincipalDep, services: ServicesDep) -> Response:
    """Forget everything that is remembered."""
    await services.memories.forget_all(principal)
    return Response(status_code=204)


@router.get(
    "/memories/{memory_id}",
    operation_id="get_memory",
    response_model=MemoryView,
    responses=problems(404),
)
async def get_memory(memory_id: UUID, principal: PrincipalDep, services: ServicesDep) -> Response:
    """Return a memory."""
    return json_answer(_json(await services.memories.get(principal, memory_id)))


@router.patch(
    "/memories/{memory_id}",
    operation_id="update_memory",
    response_model=MemoryView,
    responses=problems(404, 413, 415),
    openapi_extra=body_of(MemoryPatch, {"content": "Prefers night trains."}),
)
async def update_memory(
    memory_id: UUID,
    principal: PrincipalDep,
    services: ServicesDep,
    body: Annotated[MemoryPatch, Depends(json_body(MemoryPatch))],
) -> Response:
    """Correct a memory. It still comes from the conversation that it came from."""
    return json_answer(_json(await services.memories.edit(principal, memory_id, body.content)))


@router.delete(
    "/memories/{memory_id}",
    operation_id="delete_memory",
    status_code=204,
    response_class=Response,
    responses=problems(404),
)
async def delete_memory(
    memory_id: UUID, principal: PrincipalDep, services: ServicesDep
) -> Response:
    """Forget a memory."""
    await services.memories.forget(principal, memory_id)
    return Response(status_code=204)


def _json(memory: Memory) -> dict[str, Any]:
    return {
        "memory_id": str(memory.memory_id),
        "content": memory.content,
        "thread_id": None if memory.thread_id is None else str(memory.thread_id),
        "run_id": None if memory.run_id is None else str(memory.run_id),
        "created_at": memory.created_at.isoformat(),
        "updated_at": memory.updated_at.isoformat(),
    }
