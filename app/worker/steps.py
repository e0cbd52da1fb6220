"""How many steps a run may take in all, over its attempts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.stopping import RunStop
    from app.worker.begin import LoadedRun


class StepBudget:
    """Counts a run's steps, and has it stop between two of them once it may take no more."""

    def __init__(self, loaded: LoadedRun, most: int, stop: RunStop) -> None:
        """``most`` is for runs that say nothing of it themselves."""
        self.limit = int(loaded.request.config.get("recursion_limit", most))
        # LangGraph stores a step of its own when it applies an input.
        applying = loaded.request.input is not None
        self._left = self.limit + applying - loaded.steps
        self._stop = stop

    @property
    def is_spent(self) -> bool:
        """Whether it may take no more."""
        return self._left <= 0

    def take(self) -> None:
        """Count a step that is over. LangGraph looks whether the graph is done first."""
        self._left -= 1
        self.check()

    def check(self) -> None:
        """Have the run stop if it may take no more."""
        if self.is_spent:
            self._stop.request_drain("steps")
