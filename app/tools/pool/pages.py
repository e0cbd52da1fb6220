"""Asks a server for one page of a list after the other, which ends whatever it says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import mcp_types

    R = TypeVar("R", bound=mcp_types.PaginatedResult)
else:
    R = TypeVar("R")
T = TypeVar("T")

MAX_PAGES = 32
MOST_BYTES = 4 * 1024 * 1024
"""After so many no further page is asked for: what is kept of a list is far less."""

Page = Callable[[str | None], Awaitable[R]]
"""Asks for the page under a cursor."""


async def each_page(page: Page[R], items: Callable[[R], Sequence[T]], enough: int) -> list[T]:
    """What is on all pages, until there is no more or it is enough: the last page is kept whole."""
    found: list[T] = []
    size = 0
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(MAX_PAGES):
        result = await page(cursor)
        found += items(result)
        size += _size_of(result)
        cursor = result.next_cursor
        if cursor is None or cursor in seen or len(found) >= enough or size > MOST_BYTES:
            break
        seen.add(cursor)
        # A server that answers from memory must not keep others from their turn.
        await asyncio.sleep(0)
    return found


def _size_of(page: mcp_types.PaginatedResult) -> int:
    """Bytes of a page, about as it came; of one that cannot be written again, too many."""
    try:
        return len(page.model_dump_json())
    except ValueError:
        return MOST_BYTES + 1
