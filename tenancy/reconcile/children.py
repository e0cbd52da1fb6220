"""Children of tool servers that were written down: forgotten once gone, ended once nobody's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenancy.reconcile.facts import Lease, Outcome, Process
from tenancy.reconcile.processes import end_group, look_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from tenancy.reconcile.facts import ProcessName


@dataclass(frozen=True, slots=True)
class LeftChild:
    """A child process that somebody started and wrote down."""

    record_id: UUID
    process: ProcessName
    owner: ProcessName
    """The worker that started it."""
    forget: Callable[[], None]
    """Removes the record."""

    def lease(self, here: str) -> Lease:
        """A child has its worker's life for a lease: over once that is proven to be gone."""
        is_over = look_for(self.owner, here) is Process.GONE
        return Lease.OVER if is_over else Lease.LIVE

    def take_back(self, found: Process, here: str) -> Outcome:
        """End what is left of it, and forget it.

        Raises:
            OSError: that may not be done.
        """
        outcome = Outcome.DONE
        if found is Process.HERE and not end_group(self.process, here):
            outcome = Outcome.OVERTAKEN
        self.forget()
        return outcome
