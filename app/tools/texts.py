"""Text of servers, made such that it can be stored and sent on. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from math import isfinite
from typing import Any

LEAST_INTEGER, GREATEST_INTEGER = -(2**63), 2**64 - 1
"""What of whole numbers a checkpoint takes."""


def storable(text: str) -> str:
    """The text without what neither the database nor a model's API takes."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "")


def one_line(text: str) -> str:
    """The text in one line, of characters that are seen: none turns its direction, or hides."""
    spaced = " ".join(storable(text).split())
    return "".join(each for each in spaced if each.isprintable())


def shortened(text: str, length: int) -> str:
    """The text, of at most this length."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def is_storable(value: object) -> bool:
    """Whether JSON can be stored, and shown, exactly as it is."""
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, str) and each != storable(each):
            return False
        if isinstance(each, int | float) and not is_kept(each):
            return False
        if isinstance(each, Mapping):
            left.extend((*each.keys(), *each.values()))
        elif isinstance(each, list):
            left.extend(each)
    return True


def is_kept(number: float) -> bool:
    """Whether a number is one that is the same wherever it is stored."""
    if isinstance(number, float):
        return isfinite(number)
    return LEAST_INTEGER <= number <= GREATEST_INTEGER


def with_numbers_kept(value: Any) -> Any:  # noqa: ANN401 - JSON of any kind
    """JSON with each number as one that is kept: the database writes out what was `1e22`.

    A whole number that is too large for that, and for a float, becomes text: its digits.
    The value must not be nested deeper than may be recursed through.
    """
    if isinstance(value, Mapping):
        return {key: with_numbers_kept(each) for key, each in value.items()}
    if isinstance(value, list):
        return [with_numbers_kept(each) for each in value]
    return _kept(value) if isinstance(value, int) and not is_kept(value) else value


def _kept(number: int) -> float | str:
    try:
        near = float(number)
    except OverflowError:
        return str(number)
    return near if int(Decimal(repr(near))) == number else str(number)
