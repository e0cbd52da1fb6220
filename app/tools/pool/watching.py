"""What a pool tells whoever counts: by the names that the operator gave to servers, or ``own``."""

from __future__ import annotations

from typing import Protocol


class Watch(Protocol):
    """Hears of what becomes of connections and calls."""

    def opened(self, server: str) -> None:
        """A connection is there, from when it begins to be opened."""

    def closed(self, server: str) -> None:
        """Nothing is left of it."""

    def lost(self, server: str, reason: str) -> None:
        """It could not be opened, or ended though nobody had closed it."""

    def refused(self, server: str, reason: str) -> None:
        """Nobody tried to open one: there was no room, or the server rests."""

    def called(self, server: str, outcome: str, seconds: float) -> None:
        """A call has ended: ``ok``, ``error``, ``timeout``, ``lost``, ``asked``, ``stopped``."""


class Unwatched:
    """Where nobody counts."""

    def opened(self, server: str) -> None:
        """Say nothing of it."""

    def closed(self, server: str) -> None:
        """Nor of this."""

    def lost(self, server: str, reason: str) -> None:
        """Nor of this."""

    def refused(self, server: str, reason: str) -> None:
        """Nor of this."""

    def called(self, server: str, outcome: str, seconds: float) -> None:
        """Nor of this."""
