"""``stoa admin tools``: each server of the catalogue, tried as somebody who does not exist."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from pydantic import BaseModel, Field

from app.settings import SettingsError
from app.tools.approval.rules import ALL
from app.tools.approval.ruling import Ask
from app.tools.catalogue import Catalogue
from app.tools.pool.connection import Connection
from app.tools.pool.leased import ConnectionKey
from app.tools.pool.surroundings import Surroundings
from app.tools.pool.watching import Unwatched
from app.tools.servers import Credential, CredentialKind, McpServer, Scope, StdioTransport
from app.tools.stdio.groups import Groups
from app.tools.stdio.readiness import get_ready
from app.tools.stdio.sandbox import choose_sandbox
from tenancy.principal import UserId

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from app.settings import Settings

MOST_ERROR_BYTES = 4096
"""Of what a server writes to its standard error, the end."""

AVAILABLE = "available"
NOT_TRIED = {CredentialKind.OAUTH: "needs_authorization"}


class ToolServerView(BaseModel):
    """How a server stood."""

    server: str
    state: str = Field(description="`available`, why not, or what a person would have to give.")
    seconds: float = Field(default=0, description="How long it took to connect and list.")
    tools: list[str] = Field(default_factory=list, description="What is offered.")
    approval: dict[str, str] = Field(
        default_factory=dict,
        description="When people are asked before each tool is called, unless they are stricter"
        " themselves: `never`, `first_use`, `always`, `by_arguments`; `*`: before any other.",
    )
    unknown: list[str] = Field(
        default_factory=list, description="Tools that mcp.json names and the server does not have."
    )
    errors: str = Field(default="", description="The end of what it wrote to its standard error.")


async def try_servers(settings: Settings, names: Sequence[str]) -> list[ToolServerView]:
    """Connect to servers and list their tools, in folders that are deleted afterwards.

    Where a person's key or authorization is needed, that is all that is said.

    Raises:
        SettingsError: the catalogue cannot be used, or has no server of such a name.
    """
    servers = Catalogue.load(settings.mcp_config, Ask(settings.approval_default)).servers
    if unknown := sorted(set(names) - set(servers)):
        raise SettingsError(f"STOA_MCP_CONFIG names no server `{unknown[0]}`")
    wanted = [servers[name] for name in names or sorted(servers)]
    has_children = any(isinstance(each.transport, StdioTransport) for each in wanted)
    sandbox = await choose_sandbox(settings.mcp_sandbox if has_children else "none")
    with tempfile.TemporaryDirectory(prefix="stoa-mcp-", ignore_cleanup_errors=True) as place:
        folders = Path(place)
        get_ready(wanted, folders)
        found = []
        for server in wanted:
            errors = bytearray()
            around = Surroundings(folders, sandbox, Groups(), hear_errors=errors.extend)
            view = await _try(server, around)
            said = bytes(errors[-MOST_ERROR_BYTES:]).decode(errors="replace").strip()
            more = {"errors": said, "approval": _approval(server, view.tools)}
            found.append(view.model_copy(update=more))
    return found


async def _try(server: McpServer, surroundings: Surroundings) -> ToolServerView:
    kind = server.credential.kind
    if kind is not CredentialKind.NONE:
        return ToolServerView(server=server.name, state=NOT_TRIED.get(kind, "needs_key"))
    owner = None if server.scope is Scope.SHARED else UserId(uuid4())
    # All that it has, to tell which names mean nothing.
    whole = replace(server, allow=None, deny=frozenset())
    key = ConnectionKey(owner, server.name, server.version, 0)
    connection = Connection(key, whole, lambda: None, Unwatched())
    clock = asyncio.get_running_loop().time
    begun = clock()
    task = connection.start(Credential(), surroundings)
    try:
        await connection.opened
        seconds = round(clock() - begun, 2)
        if connection.ended.done():
            state = str(connection.ended.result())
            return ToolServerView(server=server.name, state=state, seconds=seconds)
        listed = [tool.name for tool in connection.tools]
    finally:
        connection.close()
        await asyncio.wait({task})
    return ToolServerView(
        server=server.name,
        state=AVAILABLE,
        seconds=seconds,
        tools=[name for name in listed if server.offers(name)],
        unknown=sorted(_named(server) - set(listed)),
    )


def _approval(server: McpServer, offered: Iterable[str]) -> dict[str, str]:
    """The rules in words, for what is offered and for what they name."""
    names = sorted({*offered, *filter(server.offers, server.approval.tools)})
    return {tool: server.approval.of(tool).word for tool in (ALL, *names)}


def _named(server: McpServer) -> frozenset[str]:
    """The tools that the catalogue speaks of."""
    trust = server.trust.read_only | server.trust.idempotent
    spoken_of = trust | server.deny | (server.allow or frozenset()) | set(server.approval.tools)
    return spoken_of - {ALL}
