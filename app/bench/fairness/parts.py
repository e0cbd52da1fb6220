"""The parts of the bench: who is there, and what is measured of them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.bench.fairness.people import Person

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.bench.fairness.ledger import Ledger

EQUALS = (
    Person("8 small calls at once", 8, prompt=(50, 200), output=(20, 60)),
    Person("8 large calls at once", 8, prompt=(200, 800), output=(80, 200)),
    Person("16 calls at once", 16),
    Person("32 calls at once", 32),
)
"""Everybody always has calls that wait, some more than others, some larger ones."""
WEIGHTED = (
    Person("weight 1, 32 at once", 32, weight=1),
    Person("weight 2, 16 at once", 16, weight=2),
    Person("weight 4, 8 at once", 8, weight=4),
)
RETURNING = (
    Person("always there, 8 at once", 8),
    Person("always there, 16 at once", 16),
    Person("always there, 32 at once", 32),
    Person("back from a pause", 16, comes_after=0.25),
)
RETURNS = 3
"""Who of them was away."""
LIGHT = 1
"""Who of a flood's people is the light user."""


def flooded(calls: int) -> tuple[Person, ...]:
    """One with so many calls that wait at any time, and one who asks now and then."""
    return Person("flood", calls), Person("light user", 1, pause_seconds=0.05)


@dataclass(slots=True)
class Results:
    """What was written down with one way of giving out seats."""

    name: str
    most_seats: int
    equals: Ledger | None = None
    weighted: Ledger | None = None
    returning: Ledger | None = None
    floods: dict[int, Ledger] = field(default_factory=dict)

    @property
    def ledgers(self) -> Sequence[Ledger]:
        """All of them."""
        single = (self.equals, self.weighted, self.returning)
        return [*(each for each in single if each is not None), *self.floods.values()]
