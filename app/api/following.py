"""Following a run over HTTP: as a stream of its events, or until its final values."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from app.api import sse
from app.api.live import LiveResponse
from app.runs.states import RunState
from app.runs.tail import RunEnd
from app.runs.wire import to_json

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection
    from uuid import UUID

    from app.api.services import Services
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
    *,
    after: int = 0,
    modes: Collection[str] | None = None,
) -> LiveResponse:
    """Answer with a run's events, those stored and those to come."""
    return LiveResponse(
        _frames(services, principal, run.run_id, after, modes),
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
    services: Services,
    principal: Principal,
    run_id: UUID,
    after: int,
    modes: Collection[str] | None,
) -> AsyncGenerator[bytes, None]:
    async with aclosing(services.tail.follow(principal, run_id, after)) as followed:
        async for item in followed:
            if isinstance(item, RunEnd):
                yield sse.end_frame(item)
            elif sse.is_wanted(item.event, modes):
                yield sse.event_frame(item)


async def _final_values(
    services: Services, principal: Principal, run: Run
) -> AsyncGenerator[bytes, None]:
    """The last values that the run itself reported, else those of the thread."""
    values: bytes | None = None
    async with aclosing(services.tail.follow(principal, run.run_id)) as followed:
        async for item in followed:
            if not isinstance(item, RunEnd):
                values = item.data if item.event == "values" else values
            elif item.state in _FAILED:
                yield to_json(_failure(item))
                return
    if values is None:
        state = await services.history.state(principal, run.thread_id)
        values = to_json(state["values"])
    yield values


def _failure(end: RunEnd) -> dict[str, dict[str, str | None]]:
    return {"__error__": {"error": end.error_code, "message": end.error_message}}
