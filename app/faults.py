"""Named points at which a test build dies. Elsewhere they are a call that does nothing.

Nothing a person or an operator may set arms them: only a program that is not shipped does, by
calling :func:`arm` before it starts the service (``tests/support/faulty``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

POINTS = frozenset(
    {
        "claim.before",
        "claim.after",
        "token.first",
        "tool.begun",
        "tool.answered",
        "tool.recorded",
        "checkpoint.before",
        "checkpoint.after",
        "settle.before",
        "settle.after",
        "cancel.accepted",
        "cancel.followed",
        "answer.accepted",
        "decision.accepted",
        "drain.begun",
        "erasure.recorded",
        "erasure.revoked",
        "erasure.keys_destroyed",
        "erasure.stopped",
        "erasure.batch",
        "erasure.deleted",
        "erasure.verified",
        "erasure.signed",
    }
)
"""Every point there is; each is reached by exactly one line of the service."""

_fail: Callable[[str], None] | None = None


def reach(point: str) -> None:
    """Say that a point was reached."""
    if _fail is not None:
        _fail(point)


def arm(fail: Callable[[str], None]) -> None:
    """Have ``fail`` called with the name of each point that is reached."""
    global _fail  # noqa: PLW0603 - a process has one
    _fail = fail
