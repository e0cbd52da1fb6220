"""What an exception makes of a run: a state, a stable code, a message that a person understands.

Pure. What the exception itself says goes nowhere: it may quote what people wrote.
"""

from __future__ import annotations

from dataclasses import dataclass

from langgraph.errors import GraphRecursionError

from app.models.failures import describe_model_failure
from tenancy.errors import AssistantNotFound, StoaError
from tenancy.run_states import RunState


class RunTimedOut(Exception):
    """The run's time budget is used up."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run did not succeed, as its owner is told."""

    state: RunState
    code: str
    message: str


TIMED_OUT = Failure(RunState.TIMEOUT, "run_timeout", "The run took longer than it may.")
WORKER_LOST = Failure(
    RunState.ERROR,
    "worker_lost",
    "The workers that ran this stopped unexpectedly, several times. Try again.",
)
_TOO_MANY_STEPS = Failure(RunState.ERROR, "recursion_limit", "The run took more steps than it may.")
_GRAPH_MISSING = Failure(
    RunState.ERROR, "graph_missing", "The assistant of this run is no longer available."
)
_FAILED = Failure(RunState.ERROR, "graph_failed", "The assistant failed. Try again.")


def failure_of(error: BaseException) -> Failure:
    """Classify what ended a run."""
    if isinstance(error, RunTimedOut):
        return TIMED_OUT
    if isinstance(error, GraphRecursionError):
        return _TOO_MANY_STEPS
    if isinstance(error, AssistantNotFound):
        return _GRAPH_MISSING
    described = describe_model_failure(error)
    if described is None and isinstance(error, StoaError):
        described = error  # type: ignore[assignment]
    if described is None:
        return _FAILED
    return Failure(RunState.ERROR, described.code, str(described))
