"""From how a server stands with a person to what they are shown. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.connections.standing import stored_kind
from app.tools.approval.rules import ALL
from app.tools.servers import HttpTransport

if TYPE_CHECKING:
    from app.connections.standing import UserServer
    from app.tools.servers import ListedTool, McpServer

LONGEST_DESCRIPTION = 2000
"""Characters: a server may say what it likes, at any length."""


def connection_json(found: UserServer) -> dict[str, Any]:
    """What ``/connections`` answers of one server."""
    server = found.server
    is_http = isinstance(server.transport, HttpTransport)
    return {
        "server": server.name,
        "title": server.title or server.name,
        "scope": server.scope.value,
        "transport": "http" if is_http else "stdio",
        "own": server.is_own,
        "url": _own_url(server),
        "enabled": found.enabled,
        "credential": {
            "kind": stored_kind(server) or "none",
            "is_set": found.has_credential,
            "expires_at": found.expires_at,
        },
        "state": found.state,
        "reason": found.reason,
        "tools": [_tool(server, tool) for tool in found.listing or ()],
        "resources": len(found.resources),
        "prompts": sum(not prompt.needs_arguments for prompt in found.prompts),
        "approval": {"rules": _rules(found)},
        "listed_at": found.listed_at,
        "updated_at": found.updated_at,
    }


def _rules(found: UserServer) -> dict[str, Any]:
    """When the person is asked, for each tool that somebody has said something of."""
    operator, own = found.server.approval, found.word.rules
    named = [tool for tool in operator.tools if found.server.offers(tool)]
    return {
        tool: {"operator": operator.of(tool).word, "yours": own.get(tool)}
        for tool in sorted({ALL, *named, *own})
    }


def _own_url(server: McpServer) -> str | None:
    if server.is_own and isinstance(server.transport, HttpTransport):
        return server.transport.url
    return None


def _tool(server: McpServer, tool: ListedTool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description[:LONGEST_DESCRIPTION],
        "read_only": server.trust.is_read_only(tool.name),
    }
