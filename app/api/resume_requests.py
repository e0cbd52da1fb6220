"""From what a client sent to an answer that a waiting run can go on with. Pure.

The run is the one that was accepted, so what it was made with may be said again, as LangGraph's
clients do, but not changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.api.run_requests import run_metadata, to_run_request
from app.api.thread_schemas import chosen_checkpoint
from app.runs import input_rules
from app.runs.resuming import Resume, answers_by_interrupt
from tenancy.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.agent.graphs import Assistant
    from app.api.run_schemas import RunCommand, RunCreate
    from app.runs.resuming import WaitingRun
    from app.settings import Settings
    from tenancy.scheduler.limits import Limits


def check_alone(body: RunCreate, command: RunCommand, most_bytes: int) -> None:
    """See that a body with a command is an answer, of a bounded size, and nothing else.

    Raises:
        InvalidInput: it has what belongs to a new run, or is too long.
    """
    if body.input:
        raise InvalidInput("Send an `input`, or a `command` to the run that waits; not both.")
    if body.after_seconds:
        raise InvalidInput("`after_seconds` is for a new run: an answer counts at once.")
    input_rules.check_answer(command.resume, most_bytes)


def to_resume(
    body: RunCreate,
    command: RunCommand,
    assistant: Assistant,
    waiting: WaitingRun,
    state: Mapping[str, Any],
    settings: Settings,
    limits: Limits,
) -> Resume:
    """Check an answer against the run that waits, and the state that it waits at.

    Raises:
        NothingWaits: no interrupt is open.
        InvalidInput: it answers something else, or says otherwise what the run was made with.
    """
    _check_unchanged(body, assistant, waiting, settings, limits)
    at = (state["checkpoint"] or {}).get("checkpoint_id")
    if chosen_checkpoint(body.checkpoint, body.checkpoint_id) not in (None, at):
        raise InvalidInput("`checkpoint` is not the one that the run waits at: leave it out.")
    return Resume(
        answers_by_interrupt(command.resume, state["interrupts"]),
        body.stream_modes,
        stream_subgraphs=bool(body.stream_subgraphs),
    )


def _check_unchanged(
    body: RunCreate,
    assistant: Assistant,
    waiting: WaitingRun,
    settings: Settings,
    limits: Limits,
) -> None:
    run, made = waiting.run, waiting.request
    said = to_run_request(body.model_copy(update={"input": None}), assistant, settings, limits)
    given = body.config or None
    differing = {
        "assistant_id": assistant.assistant_id != run.assistant_id,
        "config": given is not None and not _is_part(_chosen(said.config, given), made.config),
        "context": bool(said.context) and said.context != made.context,
        "metadata": not _is_part(run_metadata(body), run.metadata),
        "multitask_strategy": body.multitask_strategy not in (None, run.multitask_strategy),
        "priority": body.priority not in (None, run.priority),
    }
    changed = next((name for name, differs in differing.items() if differs), None)
    if changed is not None:
        raise InvalidInput(f"`{changed}` is not what the waiting run was made with.")


def _chosen(config: Mapping[str, Any], given: Any) -> dict[str, Any]:  # noqa: ANN401 - a model
    """What a client chose of a configuration: the rest is what everybody gets."""
    return {name: value for name, value in config.items() if value and getattr(given, name)}


def _is_part(said: Mapping[str, Any], made: Mapping[str, Any]) -> bool:
    return all(made.get(name) == value for name, value in said.items())
