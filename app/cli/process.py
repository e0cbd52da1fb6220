"""What the service's own processes have in common: settings, logging, event loop, memory."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from app.settings import Settings

_COLLECT_AFTER = 10_000
"""Objects allocated between two looks for garbage: what runs make lives briefly and in plenty."""


def run(settings: Settings, serve: Callable[[Settings], Coroutine[None, None, None]]) -> None:
    """Serve until told to end."""
    import uvloop

    from app.logging import configure_logging

    configure_logging(settings.log_format)
    # What was imported stays: looking through it again and again costs a tenth of the CPU.
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, 20, 50)
    uvloop.run(serve(settings))
