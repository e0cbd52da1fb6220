"""Who asks the model for what: the traces that are replayed. Pure.

Costs are in tokens, a token of output counting twice, as the scheduler counts them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MODEL = "paced:latest"
CONTEXT = 1024
OUTPUT = 256
HIGHEST_COST = CONTEXT + 2 * OUTPUT
SEATS = 4
MOST_SEATS = SEATS - 1
"""Of one person, as long as nobody says otherwise."""
TIME_SCALE = 25
"""Seconds of the simulated server in one second of the bench."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds for a token."""

    prompt: float
    output: float


PACE = Pace(prompt=0.001 / TIME_SCALE, output=0.025 / TIME_SCALE)
"""1,000 tokens a second are read, 40 written."""


@dataclass(frozen=True, slots=True)
class Size:
    """How many tokens a call has."""

    prompt: int
    output: int

    @property
    def cost(self) -> float:
        """What it is charged for."""
        return self.prompt + 2.0 * self.output


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody, and how they use the model: so many calls at once, each followed by the next."""

    name: str
    at_once: int
    prompt: tuple[int, int] = (50, 600)
    """Tokens of a prompt, from and to; small ones are more frequent than large ones."""
    output: tuple[int, int] = (20, 160)
    weight: float = 1
    pause_seconds: float = 0
    """Between an answer and the next call, on average."""
    comes_after: float = 0
    """Of the time that is measured, the part that they are away at the beginning."""

    def sizes(self, seed: int) -> Iterator[Size]:
        """Their calls, the same ones each time."""
        chosen = Random(f"{self.name} {seed}")  # noqa: S311 - the same trace each time
        while True:
            yield Size(_some(chosen, self.prompt), _some(chosen, self.output))

    def pauses(self, seed: int) -> Iterator[float]:
        """How long they think after each answer."""
        chosen = Random(f"{self.name} {seed} pauses")  # noqa: S311
        while True:
            yield chosen.expovariate(1 / self.pause_seconds) if self.pause_seconds else 0


def _some(chosen: Random, between: tuple[int, int]) -> int:
    least, most = between
    exponent: float = chosen.random()
    return round(least * math.pow(most / least, exponent))
