"""How large a value is, without making JSON of it: only as far as it matters. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel

LARGE_BYTES = 64 * 1024
"""Up to this size, something is worked on at once: nobody's stream notices."""

_EACH = 16
"""What any value counts for, beside its text."""


def is_large(value: object) -> bool:
    """Whether a value is, about, larger than ``LARGE_BYTES``; it is looked at no further."""
    left = LARGE_BYTES
    waiting: list[object] = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, BaseModel):
            each = each.__dict__
        if isinstance(each, str | bytes | bytearray):
            left -= len(each)
        elif isinstance(each, Mapping | list | tuple | set | frozenset):
            left -= _EACH * len(each)
            if left > 0:
                waiting.extend(each.values() if isinstance(each, Mapping) else each)
        if left <= 0:
            return True
    return False
