"""Accepting a run: checked, stored, committed, and only then announced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.api.cancelling import announce_stopped
from app.api.run_requests import run_metadata, to_run_request
from app.runs.idempotency import made_before
from app.runs.input_rules import title_of
from app.runs.runs import create_run, get_run
from app.runs.states import ThreadStatus
from app.runs.tail import thread_key
from app.runs.threads import get_thread
from tenancy.errors import InvalidInput

if TYPE_CHECKING:
    from uuid import UUID

    from app.api.run_schemas import RunCreate
    from app.api.services import Services
    from app.runs.runs import IdempotencyKey, Run
    from tenancy.principal import Principal
    from tenancy.scheduler.limits import Limits


class NothingToContinue(InvalidInput):
    """An empty run on a thread whose last run left nothing undone."""

    code = "nothing_to_continue"
    message = "Nothing is left to go on with: send an `input`, or a `checkpoint` to go on from."


async def accept_run(
    services: Services,
    principal: Principal,
    thread_id: UUID,
    body: RunCreate,
    limits: Limits,
    idempotency: IdempotencyKey | None = None,
) -> Run:
    """Put a run into its thread's queue.

    Raises:
        AssistantNotFound: there is no such assistant.
        ThreadNotFound: the user has no such thread, and none is to be created.
        CheckpointNotFound: the thread has no such checkpoint.
        ThreadBusy: the thread has a run, and none is to come beside it.
        IdempotencyConflict: the key came with another request before.
        LimitReached: too many runs wait, or threads are kept; or the tokens are used up.
        InvalidInput: the run cannot be accepted as it is.
    """
    if idempotency is not None:
        # First: what follows looks at a state that the run itself has changed since.
        async with services.database.reading(principal) as tx:
            if (run_id := await made_before(tx, idempotency)) is not None:
                return await get_run(tx, thread_id, run_id)
    assistant = services.graphs.resolve(body.assistant_id)
    request = to_run_request(body, assistant, services.settings, limits)
    metadata = run_metadata(body)
    if request.checkpoint_id is not None:
        await services.history.state(principal, thread_id, request.checkpoint_id)
    elif request.input is None:
        await _require_something_left(services, principal, thread_id)
    accepted = await create_run(
        services.database,
        principal,
        thread_id=thread_id,
        assistant_id=assistant.assistant_id,
        graph_id=assistant.graph_id,
        request=request,
        metadata=metadata,
        title=title_of(body.input),
        if_not_exists=body.if_not_exists or "reject",
        multitask_strategy=body.multitask_strategy or "enqueue",
        priority=body.priority or 0,
        after_seconds=body.after_seconds or 0,
        limits=services.limits,
        idempotency=idempotency,
    )
    announce_stopped(services, principal, stopping=accepted.stopping, ended=accepted.ended)
    services.announcer.run_queued()
    services.announcer.run_changed(thread_key(principal.user_id, thread_id))
    return accepted.run


async def _require_something_left(
    services: Services, principal: Principal, thread_id: UUID
) -> None:
    """An empty run resumes what was left. While another run is under way, nobody knows yet what."""
    async with services.database.reading(principal) as tx:
        thread = await get_thread(tx, thread_id)
    if thread.status in (ThreadStatus.BUSY, ThreadStatus.INTERRUPTED):
        return
    state = await services.history.state(principal, thread_id)
    if not state["next"]:
        raise NothingToContinue
