"""Cancelling runs: one, or many."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from pydantic import Field, model_validator
from starlette.responses import Response

from app.api.answers import json_answer
from app.api.cancelling import request_cancel, run_once_ended
from app.api.dependencies import IN_TURN, LimitsDep, PrincipalDep, ServicesDep
from app.api.following import answer_when_ended
from app.api.json_body import json_body
from app.api.openapi import body_of, problems
from app.api.run_schemas import RunView
from app.api.run_views import run_json
from app.api.schemas import QueryModel, StrictModel, Uuid
from app.runs import runs
from app.runs.cancelling import CancelAction
from app.runs.wire import to_json
from tenancy.errors import TooManyStreams
from tenancy.run_states import OPEN, RunState

if TYPE_CHECKING:
    from typing import Self

router = APIRouter(tags=["runs"], dependencies=[IN_TURN])


class CancelQuery(QueryModel):
    """How to cancel."""

    wait: bool = Field(False, description="Answer once the run has ended.")
    action: CancelAction = Field(
        "interrupt",
        description="`interrupt` keeps what the run wrote to its thread, `rollback` takes it back.",
    )


@dataclass(frozen=True, slots=True)
class Cancelling:
    """How a run is cancelled, and whether the answer waits for its end."""

    action: CancelAction
    waits: bool


async def _cancelling(
    principal: PrincipalDep,
    services: ServicesDep,
    limits: LimitsDep,
    query: Annotated[CancelQuery, Query()],
) -> AsyncIterator[Cancelling]:
    """Waiting takes one of the person's streams.

    Without one left, a run can be stopped all the same; only the answer comes at once.
    """
    with ExitStack() as held:
        waits = query.wait
        if waits:
            try:
                most = int(limits["streams"] or 0)
                held.enter_context(services.streams.held(principal.user_id, most))
            except TooManyStreams:
                waits = False
        yield Cancelling(query.action, waits)


class BulkCancelQuery(QueryModel):
    """How to cancel many."""

    action: CancelAction = "interrupt"


class BulkCancel(StrictModel):
    """Which open runs to cancel: all that match every given field."""

    thread_id: Uuid | None = None
    run_ids: Annotated[list[Uuid], Field(min_length=1, max_length=1000)] | None = None
    status: Literal["pending", "running", "all"] | None = None

    @model_validator(mode="after")
    def _names_some(self) -> Self:
        if self.thread_id is None and self.run_ids is None and self.status is None:
            raise ValueError("Name a `status`, a `thread_id` or `run_ids`.")
        return self

    @property
    def states(self) -> frozenset[RunState] | None:
        """The states that the status covers."""
        if self.status is None or self.status == "all":
            return None
        return frozenset({RunState(self.status)})


@router.post(
    "/threads/{thread_id}/runs/{run_id}/cancel",
    operation_id="cancel_run",
    response_model=RunView,
    responses={
        202: {"model": RunView, "description": "Accepted: the run is stopping."},
        **problems(404),
    },
)
async def cancel_run(
    thread_id: UUID,
    run_id: UUID,
    principal: PrincipalDep,
    services: ServicesDep,
    how: Annotated[Cancelling, Depends(_cancelling, scope="request")],
) -> Response:
    """Cancel a run. Once this is answered it ends as cancelled, or had ended before.

    One that no worker holds is cancelled at once. A running one is stopping; with `wait`, the
    answer comes when it has ended. A run that has ended is answered as it is.
    """
    async with services.database.reading(principal) as tx:
        await runs.get_run(tx, thread_id, run_id)
    await request_cancel(
        services, principal, thread_id=thread_id, run_ids=[run_id], action=how.action
    )
    async with services.database.reading(principal) as tx:
        run = await runs.get_run(tx, thread_id, run_id)
    if run.state not in OPEN:
        return json_answer(run_json(run))
    if not how.waits:
        return json_answer(run_json(run), status=202)

    async def ended() -> bytes:
        return to_json(run_json(await run_once_ended(services, principal, run)))

    return answer_when_ended(services, principal, ended)


@router.post(
    "/runs/cancel",
    operation_id="cancel_runs",
    status_code=204,
    response_class=Response,
    responses=problems(413, 415),
    openapi_extra=body_of(BulkCancel, {"status": "all"}),
)
async def cancel_many(
    principal: PrincipalDep,
    services: ServicesDep,
    query: Annotated[BulkCancelQuery, Query()],
    body: Annotated[BulkCancel, Depends(json_body(BulkCancel))],
) -> Response:
    """Cancel every open run that matches. Those that are running stop soon."""
    await request_cancel(
        services,
        principal,
        thread_id=body.thread_id,
        run_ids=body.run_ids,
        states=body.states,
        action=query.action,
    )
    return Response(status_code=204)
