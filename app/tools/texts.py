"""Text of servers, made such that it can be stored and sent on. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite


def storable(text: str) -> str:
    """The text without what neither the database nor a model's API takes."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "")


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
        if isinstance(each, float) and not isfinite(each):
            return False
        if isinstance(each, Mapping):
            left.extend((*each.keys(), *each.values()))
        elif isinstance(each, list):
            left.extend(each)
    return True
