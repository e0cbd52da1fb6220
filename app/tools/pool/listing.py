"""What a server lists, within bounds: however much it says, this much is kept."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.tools.pool.pages import each_page
from app.tools.redaction import shown
from app.tools.servers import ListedTool, McpServer
from app.tools.texts import storable

if TYPE_CHECKING:
    import mcp_types

    from app.tools.pool.pages import Page
    from app.tools.redaction import Redactor

MAX_TOOLS = 256
MOST_LOOKED_AT = 1024
"""Of one listing: what an operator's allow and deny lists leave may be among many."""
MAX_NAME = 128
MAX_TITLE = 200
MAX_DESCRIPTION = 8192
MAX_SCHEMA_BYTES = 64 * 1024
MAX_SCHEMA_DEPTH = 24
MAX_LISTING_BYTES = 512 * 1024
"""Of all descriptions and schemas together."""
MAX_VALUES = 30_000
"""In all schemas together: each costs many times what it takes on the wire, wherever it is read."""

_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
"""As JSON writes it, unless the backslash is itself one of a text's."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A server's tools that may be offered, and how many were left out for what they are."""

    tools: tuple[ListedTool, ...]
    left_out: int
    version: str


async def list_within_bounds(
    page: Page[mcp_types.ListToolsResult], server: McpServer, redactor: Redactor | None = None
) -> Listing:
    """Ask for page after page, until there is no more or it is enough."""
    found = await each_page(page, lambda result: result.tools, MAX_TOOLS)
    return within_bounds(found, server, redactor)


def within_bounds(
    tools: Sequence[mcp_types.Tool], server: McpServer, redactor: Redactor | None = None
) -> Listing:
    """The tools that are offered, each once, as much of them as there is room for.

    A listing is stored and shown: what the server repeats in it of its user's credential is not.
    """
    kept: dict[str, ListedTool] = {}
    size = values = 0
    looked_at = tools[:MOST_LOOKED_AT]
    left_out = len(tools) - len(looked_at)
    for tool in looked_at:
        if not server.offers(tool.name):
            continue
        listed = _listed(tool, redactor)
        weight, parts = (0, 0) if listed is None else _weight(listed)
        full = (
            len(kept) == MAX_TOOLS
            or size + weight > MAX_LISTING_BYTES
            or values + parts > MAX_VALUES
        )
        if listed is None or listed.name in kept or full:
            left_out += 1
            continue
        kept[listed.name] = listed
        size += weight
        values += parts
    chosen = tuple(kept.values())
    return Listing(chosen, left_out, _version(chosen))


def _listed(tool: mcp_types.Tool, redactor: Redactor | None) -> ListedTool | None:
    """One tool without what is too long; None where it cannot be used, or stored, at all."""
    schema = tool.input_schema
    if not 0 < len(tool.name) <= MAX_NAME or not tool.name.isprintable():
        return None
    if _is_deeper(schema, MAX_SCHEMA_DEPTH):
        return None
    try:
        written = _json(schema)
    except ValueError:  # a number that is none
        return None
    if len(written) > MAX_SCHEMA_BYTES or _NUL.search(written):
        return None
    title = tool.title or (tool.annotations.title if tool.annotations else None)
    description = storable(tool.description or "")
    if redactor is not None:
        if redactor.holds_secret([tool.name]):
            return None
        description = redactor.text(description)
        schema = redactor.value(schema)
    return ListedTool(
        tool.name,
        description[:MAX_DESCRIPTION],
        shown(title, MAX_TITLE, redactor) or None,
        schema,
    )


def _is_deeper(value: object, depth: int) -> bool:
    """Whether something is nested deeper than that; walks no deeper itself."""
    level: list[object] = [value]
    for _ in range(depth):
        level = [inner for each in level for inner in _parts(each)]
        if not level:
            return False
    return True


def _parts(value: object) -> Sequence[object]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else ()


def _weight(tool: ListedTool) -> tuple[int, int]:
    """Bytes of a tool, and values in its schema."""
    level: list[object] = [tool.input_schema]
    values = 0
    while level:
        values += len(level)
        level = [inner for each in level for inner in _parts(each)]
    return len(tool.description.encode()) + len(_json(tool.input_schema)), values


def _version(tools: Sequence[ListedTool]) -> str:
    said = [[each.name, each.description, each.title, each.input_schema] for each in tools]
    return hashlib.sha256(_json(said)).hexdigest()[:32]


def _json(value: Any) -> bytes:  # noqa: ANN401 - whatever JSON can hold
    return json.dumps(value, sort_keys=True, allow_nan=False).encode()
