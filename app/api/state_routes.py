"""A thread's state and its history."""

from __future__ import annotations

from contextlib import aclosing
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from app.api.answers import bounded_list, json_answer, json_bytes_answer, state_answer
from app.api.dependencies import IN_TURN, PrincipalDep, ServicesDep
from app.api.json_body import json_body
from app.api.mentioned import require_mentions_of
from app.api.openapi import body_of, problems
from app.api.thread_schemas import (
    CheckpointRef,
    HistorySearch,
    StateAtCheckpoint,
    StateQuery,
    StateUpdate,
    StateUpdated,
    StateView,
    chosen_checkpoint,
)
from app.api.thread_views import selected
from app.runs import input_rules
from app.runs.state_update import StateChange

router = APIRouter(tags=["states"], dependencies=[IN_TURN])

_EXAMPLE_UPDATE = {"values": {"messages": [{"type": "human", "content": "Hello"}]}}
_EXAMPLE_CHECKPOINT = {"checkpoint_id": "1f0c8a52-0000-6000-8000-000000000000"}


@router.get(
    "/threads/{thread_id}/state",
    operation_id="get_thread_state",
    response_model=StateView,
    responses=problems(404),
)
async def get_state(
    thread_id: UUID,
    principal: PrincipalDep,
    services: ServicesDep,
    query: Annotated[StateQuery, Query()],
) -> Response:
    """Return a thread's newest state."""
    state = await services.history.state(principal, thread_id, subgraphs=query.subgraphs)
    return await state_answer(principal.user_id, selected(state, query.select))


@router.post(
    "/threads/{thread_id}/state",
    operation_id="update_thread_state",
    response_model=StateUpdated,
    responses=problems(404, 409, 413, 415),
    openapi_extra=body_of(StateUpdate, _EXAMPLE_UPDATE),
)
async def update_state(
    thread_id: UUID,
    principal: PrincipalDep,
    services: ServicesDep,
    body: Annotated[StateUpdate, Depends(json_body(StateUpdate, holds_input=True))],
) -> Response:
    """Change a thread's state by hand, as if one of its graph's nodes had; no node is executed.

    What may be sent is what a run's input may hold, and `{type: remove, id}` for a message that is
    to go. While a run holds the thread, it is refused.
    """
    if body.values is not None:
        most_bytes = services.settings.max_message_bytes
        input_rules.check_messages(body.values, most_bytes=most_bytes, may_remove=True)
        await require_mentions_of(services, principal, body.values, thread_id)
    change = StateChange(
        body.values, body.as_node, chosen_checkpoint(body.checkpoint, body.checkpoint_id)
    )
    checkpoint_id = await services.state_updates.apply(principal, thread_id, change)
    services.announcer.run_queued()  # whoever looked meanwhile passed over what waits here
    made = {
        "thread_id": str(thread_id),
        "checkpoint_ns": "",
        "checkpoint_id": checkpoint_id,
        "checkpoint_map": {},
    }
    return json_answer({"checkpoint": made, "configurable": made})


@router.get(
    "/threads/{thread_id}/state/{checkpoint_id}",
    operation_id="get_thread_state_at_checkpoint",
    response_model=StateView,
    responses=problems(404),
)
async def get_state_at(
    thread_id: UUID,
    checkpoint_id: UUID,
    principal: PrincipalDep,
    services: ServicesDep,
    query: Annotated[StateQuery, Query()],
) -> Response:
    """Return a thread's state at one checkpoint."""
    state = await services.history.state(
        principal, thread_id, str(checkpoint_id), subgraphs=query.subgraphs
    )
    return await state_answer(principal.user_id, selected(state, query.select))


@router.post(
    "/threads/{thread_id}/state/checkpoint",
    operation_id="read_thread_state_at_checkpoint",
    response_model=StateView,
    responses=problems(404, 413, 415),
    openapi_extra=body_of(StateAtCheckpoint, {"checkpoint": _EXAMPLE_CHECKPOINT}),
)
async def read_state_at(
    thread_id: UUID,
    principal: PrincipalDep,
    services: ServicesDep,
    body: Annotated[StateAtCheckpoint, Depends(json_body(StateAtCheckpoint))],
) -> Response:
    """Return a thread's state at one checkpoint, which may be a subgraph's."""
    checkpoint = body.checkpoint
    state = await services.history.state(
        principal,
        thread_id,
        checkpoint.id_text,
        checkpoint_ns=checkpoint.checkpoint_ns or "",
        subgraphs=bool(body.subgraphs),
    )
    return await state_answer(principal.user_id, selected(state, body.select))


@router.post(
    "/threads/{thread_id}/history",
    operation_id="get_thread_history",
    response_model=list[StateView],
    responses=problems(404, 413, 415),
    openapi_extra=body_of(HistorySearch, {"limit": 10}),
)
async def get_history(
    thread_id: UUID,
    principal: PrincipalDep,
    services: ServicesDep,
    body: Annotated[HistorySearch, Depends(json_body(HistorySearch))],
) -> Response:
    """List a thread's states, newest first.

    An answer ends early once it is large; `before` the last state's checkpoint it goes on.
    """
    checkpoint = body.checkpoint or CheckpointRef()
    states = services.history.history(
        principal,
        thread_id,
        limit=body.limit,
        before=str(body.before) if body.before else None,
        metadata=body.metadata,
        checkpoint_id=checkpoint.id_text,
        checkpoint_ns=checkpoint.checkpoint_ns or "",
    )
    async with aclosing(states):
        body_json, _ = await bounded_list(
            principal.user_id, (selected(state, body.select) async for state in states)
        )
    return json_bytes_answer(body_json)
