"""Text of servers, made such that it can be stored and sent on. Pure."""

from __future__ import annotations


def storable(text: str) -> str:
    """The text without what neither the database nor a model's API takes."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "")


def shortened(text: str, length: int) -> str:
    """The text, of at most this length."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
