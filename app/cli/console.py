"""Standard output for people: as wide as the terminal, or wide enough to keep lines whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH = 160
"""Columns of a table that goes into a file or a pipe, where there is no terminal to ask."""


def console() -> Console:
    """Standard output."""
    from rich.console import Console

    found = Console(highlight=False, markup=False)
    if not found.is_terminal:
        found.width = _WIDTH
    return found
