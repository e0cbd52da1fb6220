"""A tool server whose people are asked first: it opens tickets, and sends letters that get lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any

from mcp.server import MCPServer
from pydantic import BaseModel, Field

from tests.support.oauth_server.serving import loopback_socket, served

SEND_SECONDS = 3
"""How long a letter is waited for: long enough to hand it over, as nobody ever answers."""
POLICY: dict[str, Any] = {
    "open": "always",
    "note": "first_use",
    "close": [{"ask": "always", "for_thread": True}],
    "send": "never",
}


class Place(BaseModel):
    """Where something is."""

    city: str
    floor: float


@dataclass
class Office:
    """A running server, and what it has done."""

    url: str = ""
    opened: list[tuple[str, float, str]] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    """Until it is set, nobody hears what came of a letter."""

    def build(self) -> MCPServer[Any]:
        server: MCPServer[Any] = MCPServer("office", log_level="CRITICAL")

        @server.tool(name="open")
        def open_ticket(
            title: Annotated[str, Field(title="Title", description="In a few words")],
            price: float,
            place: Place,
            urgent: bool | None = None,
        ) -> str:
            """Open a ticket."""
            self.opened.append((title, price, place.city))
            return f"Opened {title}"

        @server.tool(name="close")
        def close_ticket(ticket: int) -> str:
            """Close a ticket."""
            self.closed.append(ticket)
            return f"Closed {ticket}"

        @server.tool()
        def note(text: str) -> str:
            """Write something down."""
            self.notes.append(text)
            return "Noted"

        @server.tool()
        async def send(to: str) -> str:
            """Send a letter."""
            self.sent.append(to)
            await self.go_on.wait()
            return f"Sent to {to}"

        return server


@asynccontextmanager
async def office() -> AsyncIterator[Office]:
    """Run one."""
    listening, origin = loopback_socket()
    running = Office(f"{origin}/mcp")
    async with served(running.build().streamable_http_app(), listening):
        yield running
        running.go_on.set()
