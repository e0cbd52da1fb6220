"""Who waits until a connection may be opened, with what was good when they began to wait."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from app.tools.pool.leased import ConnectionKey


@dataclass(eq=False, slots=True)
class Wish:
    """Somebody waits to open a connection with a credential that they have."""

    key: ConnectionKey
    is_over: bool = False
    """Whether it may not be good any more."""


class Wishes:
    """All that are there now."""

    def __init__(self) -> None:
        self._wishes: set[Wish] = set()

    @contextmanager
    def one(self, key: ConnectionKey) -> Iterator[Wish]:
        """Wait for a connection of this key, while the block lasts."""
        wish = Wish(key)
        self._wishes.add(wish)
        try:
            yield wish
        finally:
            self._wishes.discard(wish)

    def end(self, is_meant: Callable[[ConnectionKey], bool]) -> None:
        """Nothing is to be opened any more for those that are meant."""
        for wish in self._wishes:
            wish.is_over = wish.is_over or is_meant(wish.key)
