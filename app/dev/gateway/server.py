"""Run the gateway until it is told to stop."""

from __future__ import annotations

import asyncio
import errno
import socket
from typing import TYPE_CHECKING

import uvicorn

from app.dev.errors import DevelopmentError
from app.dev.gateway.application import create_gateway
from app.dev.ports import without_delay

if TYPE_CHECKING:
    from app.dev.gateway.settings import GatewaySettings

_GRACE_SECONDS = 1


class _Server(uvicorn.Server):
    """Hangs up before it waits: streams don't end by themselves."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for connection in list(self.server_state.connections):
            connection.transport.close()
        await super().shutdown(sockets)


async def serve_gateway(settings: GatewaySettings) -> None:
    """Serve until SIGTERM, SIGINT or cancellation; then close every stream and return.

    Raises:
        DevelopmentError: the port is taken, or the key file cannot be used.
    """
    server = _Server(
        uvicorn.Config(
            create_gateway(settings),
            access_log=False,
            date_header=False,
            lifespan="on",
            log_config=None,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
            ws="none",
        )
    )
    listener = _listen(settings)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        server.should_exit = True
        await serving
        raise
    finally:
        listener.close()


def _listen(settings: GatewaySettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return without_delay(
            socket.create_server((settings.host, settings.port), family=family, backlog=2048)
        )
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise DevelopmentError(
                f"Port {settings.port} is taken. Stop what uses it, or choose another port."
            ) from error
        raise DevelopmentError(
            f"The gateway cannot listen on port {settings.port}: {error.strerror}."
        ) from error
