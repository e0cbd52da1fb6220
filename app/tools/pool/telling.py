"""Tells the log of servers that were lost, without a line for each person who wanted one."""

from __future__ import annotations

import structlog

log = structlog.get_logger(__name__)

QUIET_SECONDS = 60.0
"""Between two lines of the same server for the same reason."""


class Telling:
    """One pool's lines. Time is given to it."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], tuple[float, int]] = {}
        """By server and reason: when it was said, and how often it has happened since."""

    def lost(self, server: str, reason: str, now: float) -> None:
        """A connection failed, or ended though nobody had closed it."""
        told_at, unsaid = self._told.get((server, reason), (float("-inf"), 0))
        if now - told_at < QUIET_SECONDS:
            self._told[server, reason] = (told_at, unsaid + 1)
            return
        self._told[server, reason] = (now, 0)
        log.warning("tool server lost", server=server, reason=reason, times=unsaid + 1)
