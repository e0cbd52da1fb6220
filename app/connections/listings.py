"""Listings as they are stored: what a server said of its tools, as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from app.tools.servers import ListedTool

if TYPE_CHECKING:
    from collections.abc import Iterable


def to_stored(tools: Iterable[ListedTool]) -> list[dict[str, Any]]:
    """A listing as it is stored."""
    return [asdict(tool) for tool in tools]


def from_stored(stored: Iterable[dict[str, Any]]) -> tuple[ListedTool, ...]:
    """A listing that was stored."""
    return tuple(ListedTool(**each) for each in stored)
