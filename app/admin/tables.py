"""Tables in a terminal: no lines, columns only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from app.admin.moment import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import RenderableType

_IDS = frozenset({"user", "run", "worker", "at"})


def table(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> Table:
    """Rows under the names of their columns; ids stay on one line."""
    made = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        made.add_column(column, overflow="fold", no_wrap=column in _IDS)
    for row in rows:
        made.add_row(*(shown(value) for value in row))
    return made


def section(
    title: str, columns: Sequence[str], rows: Iterable[Iterable[object]]
) -> Iterable[RenderableType]:
    """A table under a title; only the title where there is nothing."""
    yield Text(f"\n{title}", style="bold")
    made = table(columns, rows)
    if made.row_count:
        yield made
