"""Following a run over HTTP: as a stream of its events, or until its final values."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from app.api import sse
from app.api.cancelling import cancel_when_gone
from app.api.frames import RunFrames, Wanted, follow_run
from app.api.live import LiveResponse
from app.runs.large_work import json_in_turn
from app.runs.referenced import GoneEvent
from app.runs.wire import to_json
from tenancy.errors import NotFound
from tenancy.run_states import RunState

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from app.api.services import Services
    from app.runs.events import StoredEvent
    from app.runs.runs import Run
    from tenancy.principal import Principal


_FAILED = frozenset({RunState.ERROR, RunState.TIMEOUT})


def run_location(run: Run) -> str:
    """Where a run is found. Clients match it greedily: nothing may follow the run's id."""
    return f"/threads/{run.thread_id}/runs/{run.run_id}"


def stream_run(
    services: Services,
    principal: Principal,
    run: Run,
    wanted: Wanted,
    *,
    ends_with_client: bool = False,
) -> LiveResponse:
    """Answer with a run's events, those stored and those to come.

    ``ends_with_client``: a client that goes away cancels the run.
    """
    return LiveResponse(
        _frames(services, principal, run, wanted),
        media_type=sse.MEDIA_TYPE,
        beat=sse.HEARTBEAT,
        expires_at=principal.identity.expires_at,
        closing=services.streams.closing_for(principal.user_id),
        when_gone=cancel_when_gone(services, principal, run) if ends_with_client else None,
        headers={
            "Content-Location": run_location(run),
            "Location": f"{run_location(run)}/stream",
            "X-Accel-Buffering": "no",
        },
    )


def wait_for_run(
    services: Services,
    principal: Principal,
    run: Run,
    *,
    after: int = 0,
    ends_with_client: bool = False,
) -> LiveResponse:
    """Answer with a run's final values, once it has them. Meanwhile, blank lines.

    ``after`` is the last event before what is waited for. ``ends_with_client``: a client that goes
    away cancels the run.
    """
    return LiveResponse(
        _final_values(services, principal, run, after),
        media_type="application/json",
        beat=b"\n",
        expires_at=principal.identity.expires_at,
        closing=services.streams.closing_for(principal.user_id),
        whole=True,
        when_gone=cancel_when_gone(services, principal, run) if ends_with_client else None,
        headers={
            "Content-Location": run_location(run),
            "Location": f"{run_location(run)}/join",
            "X-Accel-Buffering": "no",
        },
    )


def answer_when_ended(
    services: Services, principal: Principal, answer: Callable[[], Awaitable[bytes]]
) -> LiveResponse:
    """Answer with JSON that is there later. Meanwhile, blank lines."""

    async def source() -> AsyncGenerator[bytes, None]:
        try:
            yield await answer()
        except NotFound as error:  # deleted while it was waited for
            yield _failure_json(error.code, str(error))

    return LiveResponse(
        source(),
        media_type="application/json",
        beat=b"\n",
        expires_at=principal.identity.expires_at,
        closing=services.streams.closing_for(principal.user_id),
        whole=True,
        headers={"X-Accel-Buffering": "no"},
    )


async def _frames(
    services: Services, principal: Principal, run: Run, wanted: Wanted
) -> AsyncGenerator[bytes, None]:
    try:
        async with aclosing(RunFrames(services, principal, run, wanted).all()) as frames:
            async for frame in frames:
                yield frame
    except NotFound as error:  # deleted while it was read
        yield sse.error_frame(error.code, str(error))


async def _final_values(
    services: Services, principal: Principal, run: Run, after: int
) -> AsyncGenerator[bytes, None]:
    try:
        yield await _final_json(services, principal, run, after)
    except NotFound as error:  # deleted while it was waited for
        yield _failure_json(error.code, str(error))


async def _final_json(services: Services, principal: Principal, run: Run, after: int) -> bytes:
    """The last values that the run itself reported, else those that it left in its thread."""
    values: StoredEvent | None = None
    async with aclosing(follow_run(services, principal, run, after)) as pages:
        async for page in pages:
            values = next((e for e in reversed(page.events) if e.event == "values"), values)
            if page.is_last and page.state in _FAILED:
                return _failure_json(page.error_code, page.error_message)
    reported = (values,) if values is not None else ()
    async for event in services.states.fill(principal, run, reported):
        if not isinstance(event, GoneEvent):
            return event.data
    values = await services.history.run_values(principal, run)
    return await json_in_turn(principal.user_id, values)


def _failure_json(code: str | None, message: str | None) -> bytes:
    return to_json({"__error__": {"error": code, "message": message}})
