"""What the service's own processes have in common: settings, logging, event loop, memory."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from app.settings import Settings

_COLLECT_AFTER = 10_000
"""Objects allocated between two looks for garbage: what runs make lives briefly and in plenty."""

_THREAD_SECONDS = 5.0
"""How long threads, or dead connections, may hold up the end of a process."""


@contextmanager
def importing() -> Iterator[None]:
    """Look for no garbage meanwhile: imports make next to none, and a start is a sixth shorter."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def run(settings: Settings, serve: Callable[[Settings], Coroutine[None, None, None]]) -> None:
    """Serve until told to end."""
    import uvloop

    from app.logging import configure_logging, watch_loop

    configure_logging(settings.log_format)
    # What was imported stays: looking through it again and again costs a tenth of the CPU.
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, 20, 50)

    async def served() -> None:
        watch_loop(asyncio.get_running_loop())
        await serve(settings)

    uvloop.run(served())


@contextmanager
def ended_by_force() -> Iterator[Callable[[], None]]:
    """End the process a little after the block, even if a thread of somebody's graph never does.

    Python waits for threads for ever, and a supervisor would wait for Python: a worker that lost
    its lease would not be replaced. Gives out what begins that time within the block.
    """
    status = 1
    try:
        yield lambda: _end_soon(1)
        status = 0
    finally:
        _end_soon(status)


def _end_soon(status: int) -> None:
    timer = threading.Timer(_THREAD_SECONDS, _end_now, (status,))
    timer.daemon = True
    timer.start()


def _end_now(status: int) -> None:
    import structlog

    structlog.get_logger(__name__).warning("ended by force", status=status)
    os._exit(status)
