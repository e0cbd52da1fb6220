"""Cancelling runs: committed, then told to whoever has to know."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from app import faults
from app.api.frames import follow_run
from app.runs.cancelling import cancel_runs
from app.runs.runs import get_run
from app.runs.tail import run_key, thread_key
from tenancy.database.retry import while_database_is_away
from tenancy.run_states import RunState

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable
    from uuid import UUID

    from app.api.services import Services
    from app.runs.cancelling import CancelAction
    from app.runs.deletion import Deleted
    from app.runs.runs import Run
    from tenancy.principal import Principal


async def request_cancel(
    services: Services,
    principal: Principal,
    *,
    thread_id: UUID | None = None,
    run_ids: Collection[UUID] | None = None,
    states: Collection[RunState] | None = None,
    action: CancelAction = "interrupt",
) -> None:
    """Cancel the person's open runs that match; accepted on return, whatever dies after it."""
    cancelled = await while_database_is_away(
        cancel_runs,
        services.database,
        principal,
        thread_id=thread_id,
        run_ids=run_ids,
        states=states,
        action=action,
    )
    faults.reach("cancel.accepted")
    announce_stopped(
        services,
        principal,
        stopping=(run.run_id for run in cancelled if run.state is RunState.RUNNING),
        ended=(run.run_id for run in cancelled if run.state is not RunState.RUNNING),
    )


def announce_stopped(
    services: Services, principal: Principal, *, stopping: Iterable[UUID], ended: Iterable[UUID]
) -> None:
    """Tell the workers of runs that are to stop, and whoever follows those that have ended."""
    for run_id in stopping:
        services.announcer.run_stopped(run_key(principal.user_id, run_id))
    for run_id in ended:
        services.announcer.run_changed(run_key(principal.user_id, run_id))
        services.announcer.run_queued()  # what stood behind it may be its thread's head now


def announce_deleted(
    services: Services, principal: Principal, thread_id: UUID, deleted: Deleted
) -> None:
    """Tell the workers of runs that are gone, and whoever follows those or their thread."""
    announce_stopped(
        services,
        principal,
        stopping=deleted.running,
        ended=(*deleted.running, *deleted.queued),
    )
    services.announcer.run_changed(thread_key(principal.user_id, thread_id))


def cancel_when_gone(
    services: Services, principal: Principal, run: Run
) -> Callable[[], Awaitable[None]]:
    """What happens to a run whose client asked for it to end with the connection."""

    async def cancel() -> None:
        await request_cancel(services, principal, run_ids=[run.run_id])

    return cancel


async def run_once_ended(services: Services, principal: Principal, run: Run) -> Run:
    """The run as it is once it has ended, or waits for a person."""
    async with aclosing(follow_run(services, principal, run)) as pages:
        async for _ in pages:
            pass
    async with services.database.reading(principal) as tx:
        return await get_run(tx, run.thread_id, run.run_id)
