"""When a server that failed may be tried again. Pure: time is given to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.tools.pool.leased import ConnectionKey

REST_AFTER = 3
"""Failures in a row after which it is left alone."""
PAUSE_SECONDS = 0.1
"""Between the first failures; twice as long each time."""
REST_SECONDS = 5.0
MAX_REST_SECONDS = 300.0
"""The first rest, and the longest; twice as long each time a try fails."""


@dataclass(slots=True)
class Breaker:
    """One server's failures in a row, for those who share its connection."""

    failures: int = 0
    failed_at: float = 0.0
    tools_only: bool = False
    """Whether it is asked for its tools alone: asked for more, it ended."""

    def failed(self, now: float) -> None:
        """It could not be connected to, or ended by itself."""
        self.failures += 1
        self.failed_at = now

    def failed_beside(self, now: float) -> None:
        """It ended when it was asked for what it lets be read: its tools are not lost for that."""
        self.tools_only = True
        self.failed_at = now

    def worked(self) -> None:
        """It answered."""
        self.failures = 0

    def wait_seconds(self, now: float) -> float:
        """How long until it may be tried; 0 is now."""
        if self.failures == 0:
            return 0.0
        if self.failures < REST_AFTER:
            wait = PAUSE_SECONDS * float(2 ** (self.failures - 1))
        else:
            doubled = float(2 ** min(self.failures - REST_AFTER, 16))
            wait = min(REST_SECONDS * doubled, MAX_REST_SECONDS)
        return max(0.0, self.failed_at + wait - now)

    def rests(self, now: float) -> bool:
        """Whether it failed so often that nobody waits for it."""
        return self.failures >= REST_AFTER and self.wait_seconds(now) > 0

    def is_over(self, now: float) -> bool:
        """Whether nothing need be known of it any more."""
        has_nothing = self.failures == 0 and not self.tools_only
        return has_nothing or now - self.failed_at > 2 * MAX_REST_SECONDS


class Breakers:
    """One for each connection's key: a failure of somebody's says nothing of anybody else's."""

    def __init__(self) -> None:
        self._of: dict[ConnectionKey, Breaker] = {}

    def of(self, key: ConnectionKey) -> Breaker:
        """The breaker of a key, a new one where nothing is known."""
        return self._of.setdefault(key, Breaker())

    def forget(self, is_meant: Callable[[ConnectionKey, Breaker], bool]) -> None:
        """Know nothing of those that are meant."""
        for key in [key for key, breaker in self._of.items() if is_meant(key, breaker)]:
            del self._of[key]
