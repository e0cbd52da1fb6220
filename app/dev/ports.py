"""Ports on the loopback interface."""

from __future__ import annotations

import socket

from app.dev.errors import DevelopmentError

LOOPBACK = "127.0.0.1"


def is_free(port: int, host: str = LOOPBACK) -> bool:
    """Say whether a server could listen on this port now.

    Raises:
        DevelopmentError: not for want of the port, but of the permission.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # What servers set themselves: a port in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except PermissionError as error:
            raise DevelopmentError(
                f"There is no permission to listen on port {port}. Choose one above 1023."
            ) from error
        except OSError:
            return False
        return True


def free_port(preferred: int | None = None) -> int:
    """Return a free port: the preferred one if it is, else any.

    Another process may take it before the caller does; whoever listens has to be ready for that.
    """
    if preferred is not None and is_free(preferred):
        return preferred
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def without_delay(listener: socket.socket) -> socket.socket:
    """Make accepted connections send small pieces at once.

    asyncio does so only for sockets that it made itself; on others, Nagle's algorithm and a
    delayed acknowledgement cost 40 ms an answer.
    """
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
