"""What a pool tells whoever counts: by the names that the operator gave to servers, or ``own``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from app.tools.pool.failures import Reason
    from app.tools.pool.leased import ConnectionKey
    from app.tools.servers import McpServer


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

    def read(self, server: str, outcome: str, seconds: float) -> None:
        """So has the reading of a resource or a prompt: as calls do, but for ``asked``."""


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

    def read(self, server: str, outcome: str, seconds: float) -> None:
        """Nor of this."""


class Standings(Protocol):
    """Hears of each connection whether it works. What is heard later is so later."""

    def works(self, key: ConnectionKey, server: McpServer) -> None:
        """A new one is open, and its server has listed what it offers."""

    def fails(self, key: ConnectionKey, server: McpServer, reason: Reason) -> None:
        """It could not be opened, or ended though nobody had closed it."""


class Untold:
    """Where nobody is told."""

    def works(self, key: ConnectionKey, server: McpServer) -> None:
        """Say nothing of it."""

    def fails(self, key: ConnectionKey, server: McpServer, reason: Reason) -> None:
        """Nor of this."""
