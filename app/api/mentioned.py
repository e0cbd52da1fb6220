"""What messages point at, where they come in: looked for, and a model of it chosen for the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.agent.graphs import AGENT
from app.agent.speakers import MODEL
from app.api.run_schemas import RunConfig
from app.mentions.checking import mentioned_model, mentions_in
from app.runs.thread_graphs import graph_of
from tenancy.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from app.api.run_schemas import RunCreate
    from app.api.services import Services
    from tenancy.principal import Principal


def with_mentioned_model(services: Services, body: RunCreate) -> RunCreate:
    """The same run with the model that its newest message points at, where none is chosen.

    It is checked with what else is configured; one that is not there is no choice.
    """
    config = body.config or RunConfig.model_validate({})
    chosen = config.configurable or {}
    if body.input is None or chosen.get(MODEL) is not None:
        return body
    model = mentioned_model(body.input)
    if model is None or model not in services.mentions.check.models():
        return body
    configured = config.model_copy(update={"configurable": {**chosen, MODEL: model}})
    return body.model_copy(update={"config": configured})


async def require_mentions(
    services: Services, principal: Principal, values: Mapping[str, Any] | None, graph_id: str
) -> None:
    """See that what checked messages point at is their author's, and that somebody reads it.

    Raises:
        InvalidInput: a mention is of no kind that is known, or the graph is an operator's.
        MentionNotFound: what one points at is not there, or a stranger's.
    """
    placed = mentions_in(values)
    if not placed:
        return
    if graph_id != AGENT:
        raise InvalidInput("Messages to this graph cannot have `additional_kwargs.mentions`.")
    await services.mentions.check.require(principal, placed)


async def require_mentions_of(
    services: Services, principal: Principal, values: Mapping[str, Any], thread_id: UUID
) -> None:
    """The same for messages that are put into a thread by hand.

    Raises:
        ThreadNotFound: the user has no such thread.
        Those of ``require_mentions``.
    """
    if not mentions_in(values):
        return
    async with services.database.reading(principal) as tx:
        graph_id = await graph_of(tx, thread_id)
    await require_mentions(services, principal, values, graph_id)
