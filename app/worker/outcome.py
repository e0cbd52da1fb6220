"""What an attempt makes of a run: a state, and for a failure a stable code and a message.

Pure. What an exception itself says goes nowhere: it may quote what people wrote.
"""

from __future__ import annotations

from dataclasses import dataclass

from langgraph.errors import EmptyInputError, GraphRecursionError

from app.models.failures import describe_model_failure
from tenancy.errors import AssistantNotFound, StoaError
from tenancy.run_states import RunState


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a run, as its owner is told. ``pending``: another worker goes on with it."""

    state: RunState
    code: str | None = None
    message: str | None = None


SUCCEEDED = Outcome(RunState.SUCCESS)
WAITING = Outcome(RunState.WAITING)
CANCELLED = Outcome(RunState.CANCELLED)
DRAINED = Outcome(RunState.PENDING)
TIMED_OUT = Outcome(RunState.TIMEOUT, "run_timeout", "The run took longer than it may.")
WORKER_LOST = Outcome(
    RunState.ERROR,
    "worker_lost",
    "The workers that ran this stopped unexpectedly, several times. Try again.",
)
TOO_MANY_STEPS = Outcome(
    RunState.ERROR, "recursion_limit", "The run took more steps than it may. It can be continued."
)
_GRAPH_MISSING = Outcome(
    RunState.ERROR, "graph_missing", "The assistant of this run is no longer available."
)
_NOTHING_LEFT = Outcome(
    RunState.ERROR, "nothing_to_continue", "Nothing was left to go on with. Send a message."
)
FAILED = Outcome(RunState.ERROR, "graph_failed", "The assistant failed. Try again.")


def failure_of(error: BaseException) -> Outcome:
    """Classify what ended a run."""
    if isinstance(error, GraphRecursionError):
        return TOO_MANY_STEPS
    if isinstance(error, EmptyInputError):
        return _NOTHING_LEFT
    if isinstance(error, AssistantNotFound):
        return _GRAPH_MISSING
    described = describe_model_failure(error)
    if described is None and isinstance(error, StoaError):
        described = error  # type: ignore[assignment]
    if described is None:
        return FAILED
    return Outcome(RunState.ERROR, described.code, str(described))
