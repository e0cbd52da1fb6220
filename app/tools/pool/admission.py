"""Whether another connection may be opened, and which must go for it. Pure decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from tenancy.principal import UserId


_LEAVING_PART = 4
"""One in so many may be closing beside as many as are open."""


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """How many connections there may be, and how long an unused one is kept."""

    total: int = 200
    per_user: int = 8
    idle_seconds: float = 300.0


class Held(Protocol):
    """A connection, as far as room for others is concerned."""

    @property
    def owner(self) -> UserId | None:
        """Whose it is; None is everybody's."""

    @property
    def is_idle(self) -> bool:
        """Whether nobody uses it and it is open."""

    @property
    def is_closing(self) -> bool:
        """Whether it will be gone soon."""

    @property
    def last_used(self) -> float:
        """On the event loop's clock."""


H = TypeVar("H", bound=Held)


@dataclass(frozen=True, slots=True)
class Decision(Generic[H]):
    """Open now, or wait until something changes; ``evict`` makes that happen."""

    admitted: bool
    evict: H | None = None


def admit(owner: UserId | None, held: Collection[H], limits: PoolLimits) -> Decision[H]:
    """Whether this owner may have one more connection.

    Nothing in use is ever named for eviction. Whoever has none at all gets one even when every
    connection is in use: nobody can keep others out by having many. So do servers that are
    everybody's: there are no more of those than the operator offers. Nor does anybody wait for
    others' servers that are slow to go: what is closing counts no more, up to a part of all.
    """
    mine = [each for each in held if each.owner == owner]
    if owner is not None and len(mine) >= limits.per_user:
        is_closing = any(each.is_closing for each in mine)
        return Decision(admitted=False, evict=None if is_closing else _unused(mine, Counter()))
    closing = sum(each.is_closing for each in held)
    leaving = max(1, limits.total // _LEAVING_PART)
    if len(held) - min(closing, leaving) < limits.total:
        return Decision(admitted=True)
    if closing <= leaving:
        chosen = _unused(held, Counter(each.owner for each in held))
        if chosen is not None:
            return Decision(admitted=False, evict=chosen)
    return Decision(admitted=owner is None or not mine)


def _unused(held: Collection[H], counts: Counter[UserId | None]) -> H | None:
    """What was unused for longest, of those who have more than one first."""
    idle = [each for each in held if each.is_idle]
    return min(idle, key=lambda each: (counts[each.owner] == 1, each.last_used), default=None)
