"""Reads what a person's servers let be read, in their name: for what they point at in a message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenancy.errors import StoaError

if TYPE_CHECKING:
    from tenancy.principal import ClaimedRun

MOST_BYTES = 64 * 1024
"""Of one text, in UTF-8."""
READING_SECONDS = 10.0
"""How long one may take, connecting included."""


class ReadingFailed(StoaError):
    """It cannot be read now. ``reason`` is a stable code."""

    code = "reading_failed"
    message = "A tool server's resource or prompt cannot be read."

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason
        """``not_found`` (no such server for this person, or it does not list that),
        ``needs_arguments``, ``failed`` (the server answered with an error), ``too_many`` (this run
        has read as much as one may), or why the server cannot be reached: what
        :class:`app.tools.servers.Unavailable` says."""


class ConnectionReader:
    """Reads by a person's own connections, as their credentials let them."""

    async def resource(self, run: ClaimedRun, server: str, uri: str) -> str:
        """The text of a resource, without the person's credential, at most ``MOST_BYTES`` of it.

        Raises:
            ReadingFailed: there is none to be had.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        raise NotImplementedError

    async def prompt(self, run: ClaimedRun, server: str, name: str) -> str:
        """What a prompt says that needs no arguments; as for resources.

        Raises:
            ReadingFailed: there is none to be had.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        raise NotImplementedError
