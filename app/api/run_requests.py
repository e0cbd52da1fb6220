"""From what a client sent to a run that can be accepted. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.agent.graphs import AGENT
from app.agent.speakers import MODEL, check_model
from app.api.thread_schemas import chosen_checkpoint
from app.runs import input_rules
from app.runs.runs import RunRequest
from tenancy.errors import InvalidInput

if TYPE_CHECKING:
    from app.agent.graphs import Assistant
    from app.api.run_schemas import RunCreate
    from app.settings import Settings
    from tenancy.scheduler.limits import Limits

_NOT_PASSED_ON = ("thread_id", "checkpoint_id", "checkpoint_ns")
"""The route's thread wins over a body's; the others are empty here."""


def to_run_request(
    body: RunCreate, assistant: Assistant, settings: Settings, limits: Limits
) -> RunRequest:
    """Check a run's parts against each other and what its user may use.

    Raises:
        InvalidInput: one of them cannot be accepted.
    """
    checkpoint_id = chosen_checkpoint(body.checkpoint, body.checkpoint_id)
    _check_input(body, assistant, settings.max_message_bytes)
    context = body.context
    if context is not None:
        input_rules.check_scope(context, "context")
    return RunRequest(
        input=body.input,
        config=_config(body, assistant, settings, int(limits["steps_per_run"] or 0)),
        context=context,
        stream_modes=body.stream_modes,
        stream_subgraphs=bool(body.stream_subgraphs),
        checkpoint_id=checkpoint_id,
    )


def run_metadata(body: RunCreate) -> dict[str, Any]:
    """A run's metadata: that of its configuration, then its own.

    Raises:
        InvalidInput: it has keys that are not a client's.
    """
    in_config = (body.config.metadata if body.config else None) or {}
    input_rules.check_metadata(in_config, "config.metadata")
    input_rules.check_metadata(body.metadata or {}, "metadata")
    return {**in_config, **(body.metadata or {})}


def _check_input(body: RunCreate, assistant: Assistant, most_bytes: int) -> None:
    if body.input is None:
        return
    if assistant.graph_id == AGENT:
        input_rules.check_agent_input(body.input)
    input_rules.check_messages(body.input, most_bytes=most_bytes)


def _config(
    body: RunCreate, assistant: Assistant, settings: Settings, most_steps: int
) -> dict[str, Any]:
    """The configuration, with the user's own number of steps where that is not everybody's."""
    config: dict[str, Any] = {}
    if most_steps != settings.recursion_limit:
        config["recursion_limit"] = most_steps
    given = body.config
    if given is None:
        return config
    if given.tags:
        config["tags"] = given.tags
    if given.recursion_limit is not None:
        if given.recursion_limit > most_steps:
            raise InvalidInput(f"`config.recursion_limit` is at most {most_steps}.")
        config["recursion_limit"] = given.recursion_limit
    if given.configurable:
        config["configurable"] = _configurable(given.configurable)
        if assistant.graph_id == AGENT:
            _settle_model(config["configurable"], settings)
    return config


def _settle_model(configurable: dict[str, Any], settings: Settings) -> None:
    """What the built-in agent is to speak with, by its full name; without a name, the default."""
    if configurable.get(MODEL) is None:
        configurable.pop(MODEL, None)
    else:
        configurable[MODEL] = check_model(configurable[MODEL], settings)


def _configurable(given: dict[str, Any]) -> dict[str, Any]:
    if given.get("checkpoint_id") or given.get("checkpoint_ns"):
        raise InvalidInput("Name the checkpoint in `checkpoint`, not in `config.configurable`.")
    kept = {key: value for key, value in given.items() if key not in _NOT_PASSED_ON}
    input_rules.check_scope(kept, "config.configurable")
    return kept
