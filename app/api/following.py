"""Following a run over HTTP: as a stream of its events, or until its final values."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.api import sse
from app.api.live import LiveResponse
from app.runs.tail import RunEnd
from app.runs.wire import to_json
from tenancy.errors import NotFound
from tenancy.run_states import RunState

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection

    from app.api.services import Services
    from app.runs.events import StoredEvent
    from app.runs.runs import Run
    from tenancy.principal import Principal


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of a run's stream a client wants to read."""

    after: int = 0
    """The last event that the client has."""
    last: int | None = None
    """The last event in the log, where the client named one of its own."""
    modes: Collection[str] | None = None
    """Stream modes; None means everything."""


_FAILED = frozenset({RunState.ERROR, RunState.TIMEOUT})


def run_location(run: Run) -> str:
    """Where a run is found. Clients match it greedily: nothing may follow the run's id."""
    return f"/threads/{run.thread_id}/runs/{run.run_id}"


def stream_run(services: Services, principal: Principal, run: Run, wanted: Wanted) -> LiveResponse:
    """Answer with a run's events, those stored and those to come."""
    return LiveResponse(
        _frames(services, principal, run, wanted),
        media_type=sse.MEDIA_TYPE,
        beat=sse.HEARTBEAT,
        expires_at=principal.identity.expires_at,
        closing=services.streams.closing,
        headers={
            "Content-Location": run_location(run),
            "Location": f"{run_location(run)}/stream",
            "X-Accel-Buffering": "no",
        },
    )


def wait_for_run(services: Services, principal: Principal, run: Run) -> LiveResponse:
    """Answer with a run's final values, once it has them. Meanwhile, blank lines."""
    return LiveResponse(
        _final_values(services, principal, run),
        media_type="application/json",
        beat=b"\n",
        expires_at=principal.identity.expires_at,
        closing=services.streams.closing,
        whole=True,
        headers={
            "Content-Location": run_location(run),
            "Location": f"{run_location(run)}/join",
            "X-Accel-Buffering": "no",
        },
    )


async def _frames(
    services: Services, principal: Principal, run: Run, wanted: Wanted
) -> AsyncGenerator[bytes, None]:
    after = wanted.after
    try:
        if wanted.last is not None and after > wanted.last:
            yield sse.gap_frame(after, wanted.last)
            state = await services.history.state(principal, run.thread_id)
            yield sse.state_frame(to_json(state["values"]))
            after = wanted.last
        async with aclosing(_follow(services, principal, run, after)) as followed:
            async for item in followed:
                if isinstance(item, RunEnd):
                    yield sse.end_frame(item)
                elif sse.is_wanted(item.event, wanted.modes):
                    yield sse.event_frame(item)
    except NotFound as error:  # deleted while it was read
        yield sse.error_frame(error.code, str(error))


def _follow(
    services: Services, principal: Principal, run: Run, after: int = 0
) -> AsyncGenerator[StoredEvent | RunEnd, None]:
    queued = run.state is RunState.PENDING
    return services.tail.follow(principal, run.run_id, after, queued=queued)


async def _final_values(
    services: Services, principal: Principal, run: Run
) -> AsyncGenerator[bytes, None]:
    try:
        yield await _final_json(services, principal, run)
    except NotFound as error:  # deleted while it was waited for
        yield _failure_json(error.code, str(error))


async def _final_json(services: Services, principal: Principal, run: Run) -> bytes:
    """The last values that the run itself reported, else those of the thread."""
    values: bytes | None = None
    async with aclosing(_follow(services, principal, run)) as followed:
        async for item in followed:
            if not isinstance(item, RunEnd):
                values = item.data if item.event == "values" else values
            elif item.state in _FAILED:
                return _failure_json(item.error_code, item.error_message)
    if values is None:
        state = await services.history.state(principal, run.thread_id)
        values = to_json(state["values"])
    return values


def _failure_json(code: str | None, message: str | None) -> bytes:
    return to_json({"__error__": {"error": code, "message": message}})
