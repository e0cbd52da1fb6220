"""The table of rules: from what is known about a thing to the verdict on it.

Pure, and the one place that decides. A thing's owner is dead only with proof, of which there are
two: the database's clock says that the lease is over *and* the fence could be raised; or the
process had this host, this PID and this start time, and is gone. The second alone takes nothing
away, since a lease that lives may be renewed by what we do not see; but a child is its process, and
has no lease but its worker's life. Where there is no proof, the thing stays. A run is never taken
away, whatever is known: it goes back into the queue.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenancy.reconcile.facts import (
    Disposition,
    Facts,
    Found,
    Kind,
    Lease,
    Liveness,
    Outcome,
    Process,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said about a thing, in the words of an operator's table."""

    found: Found | None
    """None: it was found as its row says."""
    liveness: Liveness
    disposition: Disposition
    why: str
    in_order: bool = False
    """Whether nothing speaks against it, so that nobody need be told."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A verdict, and the facts that it is for."""

    kinds: frozenset[Kind]
    leases: frozenset[Lease]
    outcomes: frozenset[Outcome]
    disposition: Disposition
    why: str
    liveness: Liveness | None = None
    """None: what the process alone shows (``SEEN``)."""
    processes: frozenset[Process] = frozenset(Process)
    in_order: bool = False

    def covers(self, facts: Facts) -> bool:
        """Whether the rule is for these facts."""
        return (
            facts.kind in self.kinds
            and facts.lease in self.leases
            and facts.outcome in self.outcomes
            and facts.process in self.processes
        )


SEEN: Mapping[Process, tuple[Found | None, Liveness]] = {
    Process.HERE: (None, Liveness.ALIVE),
    Process.GONE: (Found.ABSENT, Liveness.DEAD),
    Process.UNREADABLE: (Found.OTHER_ERROR, Liveness.ALIVE),
    Process.ELSEWHERE: (Found.NO_HANDLE, Liveness.REMOTE),
    Process.UNNAMED: (Found.NO_HANDLE, Liveness.UNKNOWN),
}
"""What a look at the process finds, and what that alone shows about its life."""

_WORKER = frozenset({Kind.WORKER})
_RUN = frozenset({Kind.RUN})
_SCHEDULED = frozenset({Kind.CALL, Kind.QUEUE})
_CHILD = frozenset({Kind.CHILD})
_LEASED = frozenset(Kind) - _CHILD
_UNKNOWN = frozenset({Process.UNREADABLE, Process.ELSEWHERE, Process.UNNAMED})
_LIVE = frozenset({Lease.LIVE})
_LAPSED = frozenset({Lease.OVER, Lease.MISSING})

RULES: tuple[Rule, ...] = (
    Rule(
        _LEASED,
        _LIVE,
        frozenset({Outcome.NOT_TRIED}),
        Disposition.PRESERVED,
        "its process is gone, but its lease is not over yet",
        processes=frozenset({Process.GONE}),
    ),
    Rule(
        _LEASED,
        _LIVE,
        frozenset({Outcome.NOT_TRIED}),
        Disposition.PRESERVED,
        "its lease lives",
        processes=frozenset(Process) - {Process.GONE},
        in_order=True,
    ),
    Rule(
        _WORKER,
        _LAPSED,
        frozenset({Outcome.DONE}),
        Disposition.STOPPED,
        "its lease is over and it holds no run",
        liveness=Liveness.DEAD,
    ),
    Rule(
        _RUN,
        _LAPSED,
        frozenset({Outcome.DONE}),
        Disposition.REPAIRED,
        "its worker's lease is over: back in the queue under a higher fence",
        liveness=Liveness.DEAD,
    ),
    Rule(
        _SCHEDULED,
        _LAPSED,
        frozenset({Outcome.DONE}),
        Disposition.REPAIRED,
        "seats, leases and queue agree on it again",
    ),
    Rule(
        _SCHEDULED,
        _LAPSED,
        frozenset({Outcome.HELD}),
        Disposition.PRESERVED,
        "its seat cools down first, or somebody has it locked",
    ),
    Rule(
        _LEASED,
        _LAPSED,
        frozenset({Outcome.OVERTAKEN}),
        Disposition.ALREADY_ABSENT,
        "somebody else was first",
        liveness=Liveness.DEAD,
    ),
    Rule(
        _WORKER,
        _LAPSED,
        frozenset({Outcome.HELD}),
        Disposition.PRESERVED,
        "its lease is over, but it holds a run or its row is locked",
    ),
    Rule(
        _RUN,
        _LAPSED,
        frozenset({Outcome.HELD}),
        Disposition.PRESERVED,
        "its worker's lease is over, but its row is locked",
    ),
    Rule(
        _LEASED,
        _LAPSED,
        frozenset({Outcome.FAILED}),
        Disposition.PRESERVED,
        "the attempt to take it back failed",
    ),
    Rule(
        _CHILD,
        _LIVE,
        frozenset({Outcome.NOT_TRIED}),
        Disposition.PRESERVED,
        "its worker sees to it",
        processes=frozenset({Process.HERE}),
        in_order=True,
    ),
    Rule(
        _CHILD,
        _LIVE | _LAPSED,
        frozenset({Outcome.NOT_TRIED}),
        Disposition.PRESERVED,
        "whether it runs is not known here",
        processes=_UNKNOWN,
    ),
    Rule(
        _CHILD,
        _LIVE | _LAPSED,
        frozenset({Outcome.DONE}),
        Disposition.ALREADY_ABSENT,
        "it has ended: its record was removed",
        processes=frozenset({Process.GONE}),
    ),
    Rule(
        _CHILD,
        _LAPSED,
        frozenset({Outcome.DONE}),
        Disposition.STOPPED,
        "its worker is gone: ended, with all that it had started",
        processes=frozenset({Process.HERE}),
    ),
    Rule(
        _CHILD,
        _LAPSED,
        frozenset({Outcome.OVERTAKEN}),
        Disposition.ALREADY_ABSENT,
        "somebody else was first",
        liveness=Liveness.DEAD,
        processes=frozenset({Process.HERE}),
    ),
    Rule(
        _CHILD,
        _LAPSED,
        frozenset({Outcome.FAILED}),
        Disposition.PRESERVED,
        "its worker is gone, but it could not be ended",
        processes=frozenset({Process.HERE}),
    ),
    Rule(
        _CHILD,
        _LIVE | _LAPSED,
        frozenset({Outcome.FAILED}),
        Disposition.PRESERVED,
        "it has ended, but its record could not be removed",
        processes=frozenset({Process.GONE}),
    ),
)


def may_be_taken_back(kind: Kind, lease: Lease, process: Process) -> bool:
    """Whether enough is proven to try: a lease is over, or a child's worker, or the child, gone."""
    if kind is not Kind.CHILD:
        return lease is not Lease.LIVE
    return process is Process.GONE or (process is Process.HERE and lease is not Lease.LIVE)


def classify(facts: Facts) -> Verdict:
    """The verdict on one thing.

    Raises:
        ValueError: the facts contradict each other, as an act on a lease that lives would.
    """
    for rule in RULES:
        if rule.covers(facts):
            found, seen = SEEN[facts.process]
            return Verdict(found, rule.liveness or seen, rule.disposition, rule.why, rule.in_order)
    raise ValueError(f"no rule covers {facts}")
