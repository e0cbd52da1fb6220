"""The web process: from settings to a served socket, and back to nothing."""

from __future__ import annotations

import logging
import socket
from typing import TYPE_CHECKING

import structlog
import uvicorn

from app.api.application import create_app
from app.api.connection import HttpProtocol
from app.api.metrics import MeasuredAnswers
from app.api.services import open_services
from app.databases import service_settings
from app.erasure.restoring import apply_tombstones, warn_of_missing
from app.metrics import serving_metrics
from app.settings import Settings, SettingsError
from app.telemetry.export import exporting_spans
from tenancy.database.roles import assert_role

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import FastAPI

    from app.api.streams import OpenStreams

# Complaints about clients that went away or sent no HTTP; errors of ours are recorded elsewhere.
logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)

log = structlog.get_logger(__name__)

SHUTDOWN_SECONDS = 10
"""How long requests under way may take to finish. Streams end at once."""


async def serve_web(
    settings: Settings, host: str, port: int, ready: Callable[[int], None] | None = None
) -> None:
    """Serve the API and the client until SIGTERM or SIGINT.

    Run it on uvloop. ``ready`` is called with the port (which is chosen for 0) once connections
    are taken.

    Raises:
        SettingsError: a setting is missing, or the address cannot be had.
        WrongRole: a database role may do too much, or too little.
        WrongRevision: the database is not migrated to this version.
        TombstoneUnusable: somebody who was erased may be back, and it cannot be told who.
        DatabaseUnavailable: Postgres cannot be reached.
    """
    await assert_role(service_settings(settings), reads_content=True)
    with listen_on(host, port) as listening:
        async with (
            exporting_spans(settings, "web"),
            serving_metrics(
                settings, settings.web_metrics_port, "STOA_WEB_METRICS_PORT"
            ) as metrics,
            open_services(settings) as services,
        ):
            await services.scheduler_admin.assert_role()
            await services.usage_admin.assert_role()
            warn_of_missing(settings)
            await apply_tombstones(settings)
            app = create_app(services, MeasuredAnswers(metrics))
            server = WebServer(server_config(app), services.streams, ready)
            await server.serve(sockets=[listening])


def server_config(app: FastAPI) -> uvicorn.Config:
    """How HTTP is served: no header of a client's is believed, nothing of a URL is logged."""
    return uvicorn.Config(
        app,
        http=HttpProtocol,
        ws="none",
        lifespan="off",
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_config=None,
        reset_contextvars=True,  # a request's lines name itself, not one before it
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )


class WebServer(uvicorn.Server):
    """A server that ends open streams when it shuts down, so that clients go on elsewhere."""

    def __init__(
        self,
        config: uvicorn.Config,
        streams: OpenStreams,
        ready: Callable[[int], None] | None = None,
    ) -> None:
        super().__init__(config)
        self._streams = streams
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take connections, and say so."""
        await super().startup(sockets)
        (port,) = {each.getsockname()[1] for each in sockets or ()}
        log.info("serving", port=port)
        if self._ready is not None:
            self._ready(port)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop taking connections, end streams, let requests finish."""
        self._streams.close()
        await super().shutdown(sockets)


def listen_on(host: str, port: int) -> socket.socket:
    """Open the socket that connections are taken from.

    Raises:
        SettingsError: the address cannot be had.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise SettingsError(f"Cannot listen on {host}:{port}: {error.strerror}") from error
    # Accepted connections inherit it. asyncio sets it only on sockets whose protocol number is
    # given, and without it each answer (head, then body) waits 40 ms for an acknowledgement.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening
