"""What one pass found and did, for a table and for the log."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import structlog

from tenancy.reconcile.facts import Disposition, Found, Kind, Liveness

if TYPE_CHECKING:
    from uuid import UUID

    from tenancy.reconcile.rules import Verdict

log = structlog.get_logger(__name__)

_CHANGES = (Disposition.STOPPED, Disposition.REPAIRED)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing and the verdict on it."""

    kind: Kind
    id: UUID
    pid_present: bool
    verdict: Verdict
    error: str | None = None
    """The class of an unexpected failure, never its words."""
    disagreement: str | None = None
    """Of a call or a queue: what does not agree, in the words of ``check_agreement``."""


class Preservation(NamedTuple):
    """By what preservations are counted."""

    disposition: Disposition
    liveness: Liveness
    error_class: Found | None
    pid_present: bool


@dataclass(frozen=True, slots=True)
class Summary:
    """One pass. Of a dry run: what it would have done."""

    findings: tuple[Finding, ...]
    dry_run: bool

    def count(self, kind: Kind, disposition: Disposition) -> int:
        """How many things of a kind went that way."""
        return sum(
            each.kind is kind and each.verdict.disposition is disposition for each in self.findings
        )

    @property
    def changed(self) -> bool:
        """Whether anything was, or would be, changed."""
        return any(each.verdict.disposition in _CHANGES for each in self.findings)

    @property
    def failures(self) -> tuple[Finding, ...]:
        """What could not be done, and should have been."""
        return tuple(each for each in self.findings if each.error is not None)

    @property
    def preserved(self) -> Counter[Preservation]:
        """What was left alone for want of proof, counted. What is in order is not in it."""
        return Counter(
            Preservation(
                each.verdict.disposition,
                each.verdict.liveness,
                each.verdict.found,
                each.pid_present,
            )
            for each in self.findings
            if each.verdict.disposition is Disposition.PRESERVED
            and not each.verdict.in_order
            and each.error is None
        )


def log_summary(summary: Summary) -> None:
    """Leave in the log what a pass did: one line for what stays, one for each failure."""
    if summary.changed:
        log.info(
            "reconciled",
            runs_repaired=summary.count(Kind.RUN, Disposition.REPAIRED),
            workers_stopped=summary.count(Kind.WORKER, Disposition.STOPPED),
            children_stopped=summary.count(Kind.CHILD, Disposition.STOPPED),
            calls_repaired=summary.count(Kind.CALL, Disposition.REPAIRED),
            queues_repaired=summary.count(Kind.QUEUE, Disposition.REPAIRED),
        )
    if preserved := summary.preserved:
        log.warning(
            "reconciliation left things alone",
            preserved=[_plain(key, count) for key, count in sorted(preserved.items(), key=str)],
        )
    for failure in summary.failures:
        log.warning(
            "reconciliation failed",
            kind=failure.kind.value,
            id=str(failure.id),
            error=failure.error,
        )


def _plain(key: Preservation, count: int) -> dict[str, object]:
    """A count in plain words, whatever renders the log."""
    return {
        "disposition": key.disposition.value,
        "liveness": key.liveness.value,
        "error_class": key.error_class and key.error_class.value,
        "pid_present": key.pid_present,
        "count": count,
    }
