"""The end of the assertions under which streams are read, brought about when a test wants it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

SECONDS = 86_400.0
"""How long such an assertion holds: no other timer of this process is set for half as long."""


@dataclass
class Expiry:
    """The timers by which responses end with an assertion that holds for so long."""

    _timers: list[Callable[[], None]] = field(default_factory=list)

    def comes(self) -> None:
        """Let the time be over for every response that has begun so far."""
        while self._timers:
            self._timers.pop()()

    @property
    def awaited(self) -> int:
        """How many responses have begun, and end with their assertion."""
        return len(self._timers)


def expiry_at_will(monkeypatch: pytest.MonkeyPatch) -> Expiry:
    """Take the timers of assertions in hand that hold for :data:`SECONDS`."""
    loop = asyncio.get_running_loop()
    call_later = loop.call_later
    expiry = Expiry()

    def take(
        delay: float, callback: Callable[..., object], *arguments: Any, **more: Any
    ) -> asyncio.TimerHandle:
        timer = call_later(delay, callback, *arguments, **more)
        if SECONDS / 2 < delay <= SECONDS:

            def fire() -> None:
                if not timer.cancelled():
                    callback(*arguments)

            expiry._timers.append(fire)
        return timer

    monkeypatch.setattr(loop, "call_later", take)
    return expiry
