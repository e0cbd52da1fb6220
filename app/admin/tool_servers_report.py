"""What ``stoa admin tools`` shows a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from app.admin.tables import table
from app.admin.tool_servers import AVAILABLE
from app.tools.approval.rules import ALL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from app.admin.tool_servers import ToolServerView

_COLUMNS = ("server", "state", "seconds", "approval", "tools")


def tool_servers_report(found: Sequence[ToolServerView]) -> RenderableType:
    """The servers, and what is wrong with which."""
    if not found:
        return Text("There are no tool servers. See STOA_MCP_CONFIG.")
    rows = (
        (each.server, each.state, each.seconds, _approval(each), ", ".join(each.tools))
        for each in found
    )
    return Group(table(_COLUMNS, rows), *(Text(line) for line in _remarks(found)))


def _approval(found: ToolServerView) -> str:
    """When people are asked: for all tools, and for those that differ."""
    usual = found.approval[ALL]
    others = (f"{tool}: {word}" for tool, word in found.approval.items() if word != usual)
    return ", ".join([usual, *others])


def _remarks(found: Sequence[ToolServerView]) -> Iterator[str]:
    for each in found:
        if each.unknown:
            yield f"\n{each.server} has no such tools: {', '.join(each.unknown)}"
        if each.errors and each.state != AVAILABLE:
            yield f"\n{each.server} wrote to its standard error:\n{each.errors}"
