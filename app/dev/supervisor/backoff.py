"""How long to wait before starting again what died."""

from __future__ import annotations

import time

_FIRST_SECONDS = 0.5
_LONGEST_SECONDS = 30.0
_STEADY_SECONDS = 60.0


class Backoff:
    """Doubles with each death, and forgets them after a life that was long enough."""

    def __init__(self) -> None:
        self._next = _FIRST_SECONDS
        self._born = time.monotonic()

    def born(self) -> None:
        """Note that it lives again."""
        self._born = time.monotonic()

    def died(self) -> float:
        """Return the seconds to wait now."""
        if time.monotonic() - self._born >= _STEADY_SECONDS:
            self._next = _FIRST_SECONDS
        seconds, self._next = self._next, min(self._next * 2, _LONGEST_SECONDS)
        return seconds
