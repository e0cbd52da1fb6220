"""Which of some names fit what a person typed, best first. Pure."""

from __future__ import annotations

import re
import unicodedata
from heapq import nsmallest
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")

# A server says how long its listing is, and all of it is gone through at each key that is hit: by
# expressions, which take a tenth of what a loop does.
_MARKS = re.compile(
    f"[{''.join(each for each in map(chr, range(0x300, 0x10000)) if unicodedata.combining(each))}]"
)
_BETWEEN_WORDS = re.compile(r"[\W_]")


def best(
    query: str, things: Iterable[T], names: Callable[[T], Iterable[str]], limit: int
) -> list[T]:
    """Those of which one name, or all together, has every word of the query in it.

    Those with a name that begins with the query come first, then those with a word that does; of
    equals, in the order given.
    """
    asked = folded(query)
    ranked = ((_rank(asked, [folded(name) for name in names(each)]), each) for each in things)
    fitting = [(rank, n, each) for n, (rank, each) in enumerate(ranked) if rank is not None]
    return [each for _, _, each in nsmallest(limit, fitting, key=lambda found: found[:2])]


def folded(text: str) -> str:
    """A text as names are compared: without accents, whatever its case."""
    if text.isascii():
        return text.lower()
    return _MARKS.sub("", unicodedata.normalize("NFKD", text.casefold()))


def _rank(asked: str, names: list[str]) -> int | None:
    if any(name.startswith(asked) for name in names):
        return 0
    if any(asked in name for name in names):
        return 1 if any(f" {asked}" in f" {_words(name)}" for name in names) else 2
    together = " ".join(names)
    return 3 if all(word in together for word in asked.split()) else None


def _words(name: str) -> str:
    """A name with its words apart, as names of tools and addresses have none."""
    return _BETWEEN_WORDS.sub(" ", name)
