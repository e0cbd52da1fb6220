"""Ports that nobody listens on, and that nobody else is given meanwhile."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from app.dev.ports import LOOPBACK


@contextmanager
def held_port(port: int = 0) -> Iterator[int]:
    """Hold one. Connections to it are refused until a server that is started there listens.

    A server may: servers share an address, as long as only one of them listens. A port that is
    chosen at random and let go of may be another process's a moment later.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((LOOPBACK, port))
        yield holder.getsockname()[1]
