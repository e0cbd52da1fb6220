"""What the states of runs and threads are called on LangGraph's wire."""

from __future__ import annotations

from enum import StrEnum

from tenancy.run_states import TERMINAL, RunState


class ThreadStatus(StrEnum):
    """What a thread is doing, computed from its runs."""

    IDLE = "idle"
    BUSY = "busy"
    INTERRUPTED = "interrupted"
    ERROR = "error"


SETTLED = TERMINAL | {RunState.WAITING}
"""A stream ends when its run is in one of these."""

_WIRE = {RunState.WAITING: "interrupted", RunState.CANCELLED: "interrupted"}


def wire_status(state: RunState) -> str:
    """LangGraph's word for a state: it has fewer of them."""
    return _WIRE.get(state, state.value)


def states_of(status: str) -> frozenset[RunState]:
    """The states that LangGraph's word covers; empty for a word it does not have."""
    return frozenset(state for state in RunState if wire_status(state) == status)
