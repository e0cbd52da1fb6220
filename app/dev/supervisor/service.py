"""The one contract of everything that ``stoa dev`` keeps running."""

from __future__ import annotations

from typing import Protocol


class Service(Protocol):
    """Something that is started, watched and stopped."""

    name: str

    async def watch(self) -> None:
        """Keep it running, starting it again when it dies; never returns by itself.

        Raises:
            DevelopmentError: it cannot be kept running.
        """
        ...

    async def stop(self) -> None:
        """End it and leave nothing behind. Harmless when it does not run."""
        ...

    def hurry(self) -> None:
        """Make a stop that is under way an immediate one."""
        ...
