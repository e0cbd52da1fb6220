"""``stoa model``: serves the local model until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Generator, Iterator
from typing import Self

import uvicorn
from starlette.applications import Starlette

from app.dev.errors import DevelopmentError
from app.dev.model.application import LocalModel
from app.dev.model.settings import LocalModelSettings
from app.dev.model.weights import ensure_weights
from app.dev.ports import without_delay

_BACKLOG = 128
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


async def serve_model(settings: LocalModelSettings) -> None:
    """Fetch the weights where needed, load them, and answer until SIGTERM or SIGINT.

    Call it from the main thread.

    Raises:
        DevelopmentError: the port is taken, or the weights cannot be had; says what to do.
    """
    with _listening(settings) as listener, _Stop() as stop:
        try:
            await _load_and_serve(settings, listener, stop)
        except asyncio.CancelledError:
            if not stop.asked:
                raise


async def _load_and_serve(
    settings: LocalModelSettings, listener: socket.socket, stop: _Stop
) -> None:
    weights = await ensure_weights(settings.cache)
    # Imported only where it is needed: llama.cpp takes its time.
    from app.dev.model.engine import Engine  # noqa: PLC0415

    engine = Engine(weights, slots=settings.slots, context=settings.context)
    try:
        server = _build_server(LocalModel(engine, settings.model).asgi)
        stop.server = server
        await server.serve(sockets=[listener])
    finally:
        engine.close()


class _Stop:
    """Turns the first SIGTERM or SIGINT into an end in good order, whatever is going on."""

    def __init__(self) -> None:
        self.asked = False
        self.server: uvicorn.Server | None = None

    def __enter__(self) -> Self:
        self._task = asyncio.current_task()
        for number in _SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self._stop)
        return self

    def __exit__(self, *exc_info: object) -> None:
        for number in _SIGNALS:
            asyncio.get_running_loop().remove_signal_handler(number)

    def _stop(self) -> None:
        self.asked = True
        if self.server is not None:
            self.server.should_exit = True
        elif self._task is not None:
            self._task.cancel()


class _Server(uvicorn.Server):
    """Leaves the signals to ``_Stop``: its own way dies of them before the model is freed."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Do nothing."""
        yield


def _build_server(application: Starlette) -> uvicorn.Server:
    return _Server(
        uvicorn.Config(
            application,
            access_log=False,
            lifespan="off",
            # Logged by whoever runs this process; a stopped answer is nothing to complain about.
            log_config=None,
            log_level="critical",
            # Nobody reads on when this process goes.
            timeout_graceful_shutdown=0,
            ws="none",
        )
    )


@contextlib.contextmanager
def _listening(settings: LocalModelSettings) -> Iterator[socket.socket]:
    """Take the port before anything else, so that a taken one is found out at once."""
    try:
        listener = without_delay(
            socket.create_server((settings.host, settings.port), backlog=_BACKLOG)
        )
    except OSError as error:
        raise DevelopmentError(
            f"The local model cannot listen on {settings.host}:{settings.port}:"
            f" {error.strerror}. Choose another port with --port."
        ) from error
    with listener:
        yield listener
