"""What is known about one thing that an earlier process may have left, and the words for it.

Another kind of thing is one more :class:`Kind`, its rules in ``rules.py`` and whoever collects it;
a kind that has no lease, or no process, says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


class Kind(StrEnum):
    """What sort of thing it is."""

    WORKER = "worker"
    """A worker's row: its lease."""
    RUN = "run"
    """A run that is ``running`` and whose worker's lease does not say that it lives."""
    CALL = "call"
    """A model call that has a seat which it should not have, or waits where it need not."""
    QUEUE = "queue"
    """A person's queue of runs that no claim would look at, though there is something in it."""
    CHILD = "child"
    """A process that a worker of this host started for a tool server, and wrote down."""


class Lease(StrEnum):
    """What the database's clock says about the lease behind it.

    Of a child: over once its worker is known to be gone.
    """

    LIVE = "live"
    OVER = "over"
    MISSING = "missing"
    """There is no lease at all, so nobody can renew it."""


class Process(StrEnum):
    """What this machine says about the process behind it."""

    HERE = "here"
    """It runs: same host, PID and start time."""
    GONE = "gone"
    """It ran on this host, and the PID is free or somebody else's now."""
    UNREADABLE = "unreadable"
    """Something has the PID, and we may not look at it."""
    ELSEWHERE = "elsewhere"
    """It belongs to another host, of which we know nothing."""
    UNNAMED = "unnamed"
    """No PID or no start time was written down: it could be any."""


class Outcome(StrEnum):
    """What came of the attempt to take it back: under a higher fence, or not at all."""

    NOT_TRIED = "not tried"
    """The lease lives, or nothing is proven that an attempt needs."""
    DONE = "done"
    OVERTAKEN = "overtaken"
    """Somebody else did it first."""
    HELD = "held"
    """Somebody has it locked, or it still owns something: not now."""
    FAILED = "failed"


class Found(StrEnum):
    """Why a thing could not be taken for what its row says."""

    ABSENT = "absent"
    OTHER_ERROR = "other error"
    NO_HANDLE = "no handle"


class Liveness(StrEnum):
    """What is proven about whoever owns it."""

    DEAD = "dead"
    ALIVE = "alive"
    UNKNOWN = "unknown"
    REMOTE = "remote"


class Disposition(StrEnum):
    """What became of it."""

    STOPPED = "stopped"
    ALREADY_ABSENT = "already_absent"
    PRESERVED = "preserved"
    REPAIRED = "repaired"


@dataclass(frozen=True, slots=True)
class ProcessName:
    """What is one process and no other: a PID alone is somebody else's sooner or later."""

    host: str | None
    pid: int | None
    started_at: datetime | None


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the verdict on one thing depends on."""

    kind: Kind
    lease: Lease
    process: Process
    outcome: Outcome
