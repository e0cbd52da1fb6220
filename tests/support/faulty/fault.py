"""What goes wrong, and when."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import dataclass
from typing import Self

from app.faults import POINTS

VARIABLE = "FAULT_AT"


@dataclass
class Fault:
    """This process gets a signal when it reaches a point for the ``nth`` time.

    It is sent by the process to itself, so that nothing runs after the point: not one more line,
    unless it is to come ``later``.
    """

    point: str
    nth: int = 1
    number: signal.Signals = signal.SIGKILL
    later: float = 0.0
    """So many seconds after it, wherever the process is by then."""
    _reached: int = 0

    def __post_init__(self) -> None:
        assert self.point in POINTS, f"no such point: {self.point}"

    @property
    def environment(self) -> dict[str, str]:
        """What makes a faulty program fail like this."""
        return {VARIABLE: f"{self.point} {self.nth} {self.number.name} {self.later}"}

    @classmethod
    def from_environment(cls) -> Self:
        """What :attr:`environment` said."""
        point, nth, name, later = os.environ[VARIABLE].split()
        return cls(point, int(nth), signal.Signals[name], float(later))

    def reach(self, point: str) -> None:
        """Called by the program at each point."""
        if point != self.point:
            return
        self._reached += 1
        if self._reached != self.nth:
            return
        if self.later:
            threading.Timer(self.later, os.kill, (os.getpid(), self.number)).start()
        else:
            os.kill(os.getpid(), self.number)
