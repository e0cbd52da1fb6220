"""How ``stoa dev`` and a process it starts talk: one byte to let it go, one back when it is ready.

``stoa dev`` starts its processes at once and lets each go when what it needs is there. Importing
takes most of a start, so this takes most of the waiting out of it.
"""

from __future__ import annotations

import socket
import sys
from typing import Annotated

import typer

TurnSocket = Annotated[
    int | None,
    typer.Option("--turn-socket", hidden=True, help="Socket of the process that started this one."),
]


class Turn:
    """The started end; without a socket nobody is waited for and nobody is told."""

    def __init__(self, descriptor: int | None) -> None:
        self._socket = None if descriptor is None else socket.socket(fileno=descriptor)

    def wait(self) -> None:
        """Return when it is our turn; end this process quietly if the other end is gone."""
        if self._socket is not None and not self._socket.recv(1):
            sys.exit(1)

    def ready(self) -> None:
        """Tell the other end that this process does its work now."""
        if self._socket is not None:
            self._socket.send(b"!")
            self._socket.close()
