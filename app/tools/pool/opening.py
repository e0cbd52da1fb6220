"""Opens one connection: a child or an HTTP client, and the protocol's client upon it.

Imported by the first connection, since the protocol's libraries take a second to import.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

import fastmcp
import mcp_types
from fastmcp.client import Client

from app.outbound import UrlRefused
from app.tools.pool.asking import Asking
from app.tools.pool.failures import Reason, ToolServerUnavailable
from app.tools.pool.http import ClientFactory, operators_client
from app.tools.pool.offered import Part
from app.tools.pool.surroundings import Surroundings
from app.tools.pool.wires import HttpWire, StdioWire
from app.tools.servers import Credential, McpServer, StdioTransport
from app.tools.stdio.child import Child
from app.tools.stdio.command import ProgramMissing, command_of
from app.tools.stdio.folders import FolderUnusable, make_folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp import ClientSession

    from tenancy.principal import UserId

# They quote what servers say, and fastmcp writes past our renderer.
for _name in ("fastmcp", "mcp", "httpx2", "httpcore2"):
    logging.getLogger(_name).handlers.clear()
    logging.getLogger(_name).propagate = True
    logging.getLogger(_name).setLevel(logging.CRITICAL)


# Twice that: until it cancels what does not end, and until it leaves that to itself.
fastmcp.settings.client_disconnect_timeout = 2.0


@dataclass(frozen=True, slots=True)
class Heard:
    """What is told of a connection while it is opened and open."""

    changed: Callable[[Part], None]
    """Of what the server offers, this is other now."""
    lost: Callable[[Reason], None]
    """It is of no use any more."""


@dataclass(frozen=True, slots=True)
class Line:
    """An open connection."""

    wire: StdioWire | HttpWire
    client: Client[StdioWire | HttpWire]
    asking: Asking
    child: Child | None = None

    @property
    def session(self) -> ClientSession:
        """The protocol's session.

        Raises:
            RuntimeError: it is over.
        """
        return self.client.session


@asynccontextmanager
async def opened(
    owner: UserId | None,
    server: McpServer,
    credential: Credential,
    surroundings: Surroundings,
    heard: Heard,
) -> AsyncIterator[Line]:
    """A connection, for as long as the block lasts.

    Entered and left by one task. What goes wrong in between may be raised again at the end.

    Raises:
        ToolServerUnavailable: there is nothing to connect to.
    """
    asking = Asking()
    if isinstance(server.transport, StdioTransport):
        async with _child(owner, server, server.transport, credential, surroundings) as child:
            stdio = StdioWire(child, asking.answer)
            async with _client(stdio, heard) as client:
                yield Line(stdio, client, asking, child)
        return
    make: ClientFactory = operators_client
    if server.is_own:
        if surroundings.own_clients is None:
            raise ToolServerUnavailable(server.name, Reason.REFUSED)
        try:
            make = surroundings.own_clients(server.transport.url)
        except UrlRefused:
            raise ToolServerUnavailable(server.name, Reason.REFUSED) from None
    http = HttpWire(server, server.transport, credential, make, asking.answer)
    async with _client(http, heard) as client:
        yield Line(http, client, asking)


@asynccontextmanager
async def _child(
    owner: UserId | None,
    server: McpServer,
    transport: StdioTransport,
    credential: Credential,
    surroundings: Surroundings,
) -> AsyncIterator[Child]:
    try:
        folder = make_folder(surroundings.folders, owner, server.name)
        command = command_of(transport, credential, folder)
        child = await Child.start(
            command, surroundings.sandbox, surroundings.groups, surroundings.hear_errors
        )
    except (ProgramMissing, FolderUnusable, OSError):
        raise ToolServerUnavailable(server.name, Reason.UNREACHABLE) from None
    try:
        yield child
    finally:
        await child.stop()


def _client(wire: StdioWire | HttpWire, heard: Heard) -> Client[StdioWire | HttpWire]:
    """Neither the model nor folders are offered to the server; time is bounded by the caller."""

    async def hear(message: mcp_types.ServerNotification | Exception) -> None:
        match message:
            case mcp_types.ToolListChangedNotification():
                heard.changed(Part.TOOLS)
            case mcp_types.ResourceListChangedNotification():
                heard.changed(Part.RESOURCES)
            case mcp_types.PromptListChangedNotification():
                heard.changed(Part.PROMPTS)

    wire.loss.reason.add_done_callback(lambda loss: heard.lost(loss.result()))
    return Client(
        wire,
        client_info=mcp_types.Implementation(name="stoa", version=version("stoa")),
        message_handler=hear,
        log_handler=_drop,
        progress_handler=_no_progress,
        init_timeout=0,
    )


async def _drop(_message: object) -> None:
    """What servers log may be anybody's words."""


async def _no_progress(_progress: float, _total: float | None, _message: str | None) -> None:
    """Nobody waits for it."""
