"""Accepting a run, or an answer to one: checked, stored, committed, and only then announced."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import structlog

from app import faults
from app.agent.graphs import AGENT
from app.api.cancelling import announce_stopped
from app.api.deciding import decide_and_announce
from app.api.frames import Wanted
from app.api.mentioned import require_mentions, with_mentioned_model
from app.api.resume_decisions import decisions_for
from app.api.resume_requests import check_alone, to_resume
from app.api.run_requests import run_metadata, to_run_request
from app.request_id import current_request_id
from app.runs.approvals import ApprovalFilter, list_approvals
from app.runs.events import read_log
from app.runs.idempotency import made_before
from app.runs.input_rules import title_of
from app.runs.resuming import find_waiting_run, require_waiting, resume_run
from app.runs.runs import create_run, get_run
from app.runs.states import ThreadStatus
from app.runs.tail import run_key, thread_key
from app.runs.thread_size import require_room
from app.runs.threads import get_thread
from tenancy.errors import InvalidInput, NothingWaits

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from app.api.run_schemas import RunCommand, RunCreate
    from app.api.services import Services
    from app.runs.resuming import Resume
    from app.runs.runs import IdempotencyKey, Run
    from tenancy.principal import Principal
    from tenancy.scheduler.limits import Limits

log = structlog.get_logger(__name__)

MOST_ASKED = 1000
"""Questions of one run's open interrupts."""


class NothingToContinue(InvalidInput):
    """An empty run on a thread whose last run left nothing undone."""

    code = "nothing_to_continue"
    message = "Nothing is left to go on with: send an `input`, or a `checkpoint` to go on from."


@dataclass(frozen=True, slots=True)
class Accepted:
    """A run that was accepted, and what of its stream belongs to the answer."""

    run: Run
    wanted: Wanted


async def accept(
    services: Services,
    principal: Principal,
    thread_id: UUID,
    body: RunCreate,
    limits: Limits,
    idempotency: IdempotencyKey | None = None,
) -> Accepted:
    """Put a run into its thread's queue, or let the one that waits go on with a person's answer.

    Raises:
        RunNotFound: what the idempotency key stands for was deleted.
        IdempotencyConflict: the key came with another request before.
        Others: those of the two functions below.
    """
    # First: what follows looks at a state that the request itself has changed since.
    if (run := await _accepted_before(services, principal, thread_id, idempotency)) is not None:
        return Accepted(run, Wanted())
    if (command := body.command) is None:
        run = await _accept_run(services, principal, thread_id, body, limits, idempotency)
        return Accepted(run, Wanted())
    try:
        return await _accept_answer(
            services, principal, thread_id, body, command, limits, idempotency
        )
    except NothingWaits:
        # Not any more: it may have been this same request that came in between.
        run = await _accepted_before(services, principal, thread_id, idempotency)
        if run is None:
            raise
        return Accepted(run, Wanted())


async def _accepted_before(
    services: Services,
    principal: Principal,
    thread_id: UUID,
    idempotency: IdempotencyKey | None,
) -> Run | None:
    if idempotency is None:
        return None
    async with services.database.reading(principal) as tx:
        run_id = await made_before(tx, idempotency)
        return None if run_id is None else await get_run(tx, thread_id, run_id)


async def _accept_answer(
    services: Services,
    principal: Principal,
    thread_id: UUID,
    body: RunCreate,
    command: RunCommand,
    limits: Limits,
    idempotency: IdempotencyKey | None,
) -> Accepted:
    """Let the waiting run of a thread go on.

    Raises:
        AssistantNotFound: there is no such assistant.
        ThreadNotFound: the user has no such thread.
        NothingWaits: no run of it waits, or not for this any more.
        ThreadTooLarge: the thread holds too much already for an answer as large as this one.
        InvalidInput: the answer cannot be accepted as it is.
    """
    check_alone(body, command, services.settings.max_message_bytes)
    assistant = services.graphs.resolve(body.assistant_id)
    async with services.database.reading(principal) as tx:
        waiting = await find_waiting_run(tx, thread_id)
    state = await services.history.state(principal, thread_id)
    async with services.database.reading(principal) as tx:
        await require_waiting(tx, waiting)
    resume = to_resume(body, command, assistant, waiting, state, services.settings, limits)
    await require_room(services.database, principal, thread_id, resume.answers)
    if waiting.run.graph_id == AGENT:
        asked = {each["id"]: each["value"] for each in state["interrupts"]}
        return await _decide(services, principal, waiting.run, resume, asked, idempotency)
    resumed = await resume_run(services.database, principal, waiting, resume, idempotency)
    faults.reach("answer.accepted")
    log.info("run goes on", run_id=str(resumed.run.run_id))
    services.announcer.run_queued()
    services.announcer.run_changed(run_key(principal.user_id, resumed.run.run_id))
    services.announcer.run_changed(thread_key(principal.user_id, thread_id))
    wanted = Wanted(resumed.after, modes=resume.stream_modes, subgraphs=resume.stream_subgraphs)
    return Accepted(resumed.run, wanted)


async def _decide(
    services: Services,
    principal: Principal,
    run: Run,
    resume: Resume,
    asked: Mapping[str, Any],
    idempotency: IdempotencyKey | None,
) -> Accepted:
    """Decide on what the built-in agent asks. It goes on once nothing of it is open.

    Raises:
        Those of ``decisions_for`` and ``decide``.
    """
    async with services.database.reading(principal) as tx:
        these = ApprovalFilter(run_id=run.run_id, interrupts=asked.keys())
        rows = await list_approvals(tx, these, limit=MOST_ASKED)
    decided = await decide_and_announce(
        services,
        principal,
        run.run_id,
        decisions_for(resume.answers, asked, rows),
        resume=replace(resume, answers={}),
        idempotency=idempotency,
    )
    if not decided.is_new:
        return Accepted(decided.run, Wanted())
    after = decided.after
    if not decided.resumed and await _ends_with_values(services, principal, run, after):
        after -= 1
    wanted = Wanted(after, modes=resume.stream_modes, subgraphs=resume.stream_subgraphs)
    return Accepted(decided.run, wanted)


async def _ends_with_values(
    services: Services, principal: Principal, run: Run, last_seq: int
) -> bool:
    """Whether the log of a run that waits ends with what it asks, which is told again then."""
    page = await read_log(services.database, principal, run.run_id, last_seq - 1)
    return page is not None and [event.event for event in page.events] == ["values"]


async def _accept_run(
    services: Services,
    principal: Principal,
    thread_id: UUID,
    body: RunCreate,
    limits: Limits,
    idempotency: IdempotencyKey | None,
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
    assistant = services.graphs.resolve(body.assistant_id)
    body = with_mentioned_model(services, body)
    request = to_run_request(body, assistant, services.settings, limits)
    await require_mentions(services, principal, body.input, assistant.graph_id)
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
        request_id=current_request_id(),
    )
    if accepted.is_new:
        log.info("run accepted", run_id=str(accepted.run.run_id))
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
