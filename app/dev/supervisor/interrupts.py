"""Ctrl-C and its relatives: the first asks for an end, the second for a quick one."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from types import TracebackType
from typing import Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Turns signals into calls of ``first`` and then ``second``."""

    def __init__(self, first: Callable[[], object], second: Callable[[], object]) -> None:
        self._first = first
        self._second = second
        self.happened = False

    def __enter__(self) -> Self:
        """Take over the signals."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._on_signal)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Give them back."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.remove_signal_handler(number)

    def _on_signal(self) -> None:
        call = self._second if self.happened else self._first
        self.happened = True
        call()
