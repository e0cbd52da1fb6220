"""What clients were told while things went wrong; afterwards all of it has to be true."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Strategy = Literal["enqueue", "reject", "interrupt", "rollback"]
Action = Literal["interrupt", "rollback"]


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that may not be: which rule it breaks, and where."""

    rule: str
    where: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.where}"


@dataclass(slots=True)
class Promise:
    """A run that was accepted, and what its owner has seen of it."""

    person: str
    thread_id: str
    run_id: str
    text: str | None
    """What was said; None for a run that goes on with what was left."""
    cancel_accepted: bool = False
    """Whether a cancel was answered while the run had not ended."""
    told: set[str] = field(default_factory=set)
    """The final states, in LangGraph's words, that the owner was told."""
    frames: dict[int, bytes] = field(default_factory=dict)
    """The stored events that were streamed, by their ids."""
    gaps: set[int] = field(default_factory=set)
    """Where the stream said that the log has something no more."""

    @property
    def last_seen(self) -> int:
        """The last place in the log that was heard of."""
        return max(max(self.frames, default=0), max(self.gaps, default=0))

    @property
    def location(self) -> str:
        """Where the run is found."""
        return f"/threads/{self.thread_id}/runs/{self.run_id}"


@dataclass(slots=True)
class Promises:
    """Everything that was accepted, and everything that no client should have seen."""

    runs: dict[str, Promise] = field(default_factory=dict)
    broken: list[Violation] = field(default_factory=list)

    def keep(self, promise: Promise) -> Promise:
        """Write down an accepted run; the one already known, if it was accepted before."""
        return self.runs.setdefault(promise.run_id, promise)

    def breach(self, rule: str, where: str) -> None:
        """Write down what a client should not have seen."""
        self.broken.append(Violation(rule, where))
