"""Accepting a run: checked, stored, committed, and only then announced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.api.run_requests import run_metadata, to_run_request
from app.runs.input_rules import title_of
from app.runs.runs import create_run

if TYPE_CHECKING:
    from uuid import UUID

    from app.api.run_schemas import RunCreate
    from app.api.services import Services
    from app.runs.runs import Run
    from tenancy.principal import Principal


async def accept_run(
    services: Services, principal: Principal, thread_id: UUID, body: RunCreate
) -> Run:
    """Put a run into its thread's queue.

    Raises:
        AssistantNotFound: there is no such assistant.
        ThreadNotFound: the user has no such thread, and none is to be created.
        CheckpointNotFound: the thread has no such checkpoint.
        InvalidInput: the run cannot be accepted as it is.
    """
    assistant = services.graphs.resolve(body.assistant_id)
    request = to_run_request(body, assistant, services.settings)
    metadata = run_metadata(body)
    if request.checkpoint_id is not None:
        await services.history.state(principal, thread_id, request.checkpoint_id)
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
    )
    services.announcer.run_queued()
    return accepted.run
