"""The life of a run as a state machine: which states there are, and what may become of each.

The one place where it is written. ``stoa migrate`` makes of it what the database's trigger asks
(:func:`transition_statement`), so an illegal step is refused whoever tries it;
``docs/run-states.md`` draws it, and a test keeps the drawing equal.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class RunState(StrEnum):
    """Where a run is in its life."""

    PENDING = "pending"
    RUNNING = "running"
    WAITING = "waiting"
    SUCCESS = "success"
    ERROR = "error"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"


TERMINAL = frozenset({RunState.SUCCESS, RunState.ERROR, RunState.TIMEOUT, RunState.CANCELLED})
"""A run in one of these never changes again."""

OPEN = frozenset(RunState) - TERMINAL
"""A run in one of these still has something before it."""

TRANSITIONS: Mapping[RunState, Mapping[RunState, str]] = {
    RunState.PENDING: {
        RunState.RUNNING: "claimed by a worker",
        RunState.CANCELLED: "cancelled",
    },
    RunState.RUNNING: {
        RunState.PENDING: "given back, or its worker's lease ran out",
        RunState.WAITING: "stopped at an interrupt",
        RunState.SUCCESS: "the graph ended",
        RunState.ERROR: "failed",
        RunState.TIMEOUT: "used up its time",
        RunState.CANCELLED: "cancelled",
    },
    RunState.WAITING: {
        RunState.PENDING: "the last decision was made",
        RunState.CANCELLED: "cancelled",
    },
    **{state: {} for state in TERMINAL},
}
"""From each state to those that may follow, and why they would."""

FIRST = RunState.PENDING
"""Every run begins here."""


def may_become(before: RunState, after: RunState) -> bool:
    """Whether a run may go from one state to another. Staying is no transition."""
    return after in TRANSITIONS[before]


def transition_statement() -> str:
    """The SQL of ``tenant.may_become``, which the trigger on ``runs`` asks."""
    pairs = ", ".join(
        f"('{before}', '{after}')" for before, nexts in TRANSITIONS.items() for after in nexts
    )
    return (
        "CREATE OR REPLACE FUNCTION tenant.may_become(p_before run_state, p_after run_state)"
        " RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$"
        f" SELECT (p_before::text, p_after::text) IN ({pairs}) $$"
    )


def state_diagram() -> str:
    """The machine as a Mermaid diagram and a table, as ``docs/run-states.md`` has them.

    ``python -m tenancy.run_states`` prints it.
    """
    steps = [
        (before, after, why)
        for before, nexts in TRANSITIONS.items()
        for after, why in nexts.items()
    ]
    lines = [
        "```mermaid",
        "stateDiagram-v2",
        f"    [*] --> {FIRST}: accepted",
        *(f"    {before} --> {after}: {why}" for before, after, why in steps),
        *(f"    {state} --> [*]" for state in RunState if state in TERMINAL),
        "```",
        "",
        "| from | to | when |",
        "|---|---|---|",
        *(f"| `{before}` | `{after}` | {why} |" for before, after, why in steps),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(state_diagram())  # noqa: T201 - what it is for
