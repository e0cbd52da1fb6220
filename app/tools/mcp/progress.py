"""What a server says in the middle of a call, as ``custom`` events of the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import isfinite
from typing import TYPE_CHECKING, Any

from langgraph.config import get_stream_writer

from app.tools.texts import shortened, storable

if TYPE_CHECKING:
    from app.tools.redaction import Redactor

REST_SECONDS = 0.25
"""At least so long between two events of one call: what comes sooner is left out."""
MESSAGE_LENGTH = 300


class ProgressEvents:
    """One call's progress. Made where the call is made: later ones come from other tasks."""

    def __init__(self, tool_call_id: str, redactor: Redactor) -> None:
        self._tool_call_id = tool_call_id
        self._redactor = redactor
        self._write = _writer()
        self._loop = asyncio.get_running_loop()
        self._next = 0.0

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """Hand one on, unless one was just now."""
        if self._write is None or (now := self._loop.time()) < self._next:
            return
        if not isfinite(progress) or (total is not None and not isfinite(total)):
            return  # JSON has no word for it
        self._next = now + REST_SECONDS
        text = None if message is None else self._redactor.text(storable(message))
        self._write(
            {
                "type": "tool_progress",
                "tool_call_id": self._tool_call_id,
                "progress": progress,
                "total": total,
                "message": None if text is None else shortened(text, MESSAGE_LENGTH),
            }
        )

    def close(self) -> None:
        """Hand nothing on any more: the call is over."""
        self._write = None


def _writer() -> Callable[[Any], None] | None:
    try:
        return get_stream_writer()
    except (RuntimeError, KeyError):  # nobody runs a graph here
        return None
