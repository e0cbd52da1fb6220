"""A tool server over streamable HTTP, of the protocol's own library, in this process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel
from starlette.types import ASGIApp, Receive, Scope, Send

BIG = 24 * 1024 * 1024
LISTENING = "subscriptions/listen"
LISTED_LAST = "prompts/list"


class Name(BaseModel):
    """What the server wants to know."""

    name: str


def which_name() -> Elicit[Name]:
    return Elicit("Who are you?", Name)


@dataclass
class HttpToolServer:
    """A running server, and what it was sent."""

    url: str = ""
    requests: list[dict[str, str]] = field(default_factory=list)
    """The headers of each, in their order."""
    paths: set[str] = field(default_factory=set)
    older: bool = False
    """Whether it knows only the protocol that has sessions, which are ended by a request."""
    endless: bool = False
    """Whether requests are answered with a stream of events that has no end."""
    silent: bool = False
    """Whether requests are heard and not answered."""
    _server: Any = None
    status: int | None = None
    """What everything is answered with instead, once it is set."""
    location: str = ""
    hanging: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a call hangs."""
    let_go: asyncio.Event = field(default_factory=asyncio.Event)
    refused: Mapping[str, int] = field(default_factory=dict)
    """What requests of these methods are answered with instead."""
    holds_listening: bool = False
    """Whether nobody is promised to be told of changes before they may listen."""
    may_listen: asyncio.Event = field(default_factory=asyncio.Event)
    _built: Any = None

    def headers(self, name: str) -> list[str | None]:
        """One header of all requests."""
        return [headers.get(name) for headers in self.requests]

    async def is_listened_to(self, times: int) -> None:
        """Return once so many want to be told of changes, which they begin to by themselves."""
        await self._is_asked(LISTENING, times)

    async def has_listed_all(self, times: int) -> None:
        """Return once so many have asked for all there is, and send no more by themselves."""
        # Tools again, once it was promised to tell of changes.
        await self._is_asked("tools/list", 2 * times)
        await self._is_asked(LISTED_LAST, times)

    async def _is_asked(self, method: str, times: int) -> None:
        async with asyncio.timeout(60):
            while self.headers("mcp-method").count(method) < times:  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    async def drip(self, send: Send) -> None:
        kind = (b"content-type", b"text/event-stream")
        await send({"type": "http.response.start", "status": 200, "headers": [kind]})
        while not self.let_go.is_set():
            await send({"type": "http.response.body", "body": b": x\n", "more_body": True})
            await asyncio.sleep(0.01)

    def cut(self) -> None:
        """Cut every connection as a crash does."""
        for each in list(self._server.server_state.connections):
            each.transport.abort()

    def add_sudden_tool(self) -> None:
        """Have a tool more, and tell nobody."""
        self._built.add_tool(lambda: "sudden", name="sudden")

    def build(self) -> MCPServer[Any]:
        server: MCPServer[Any] = MCPServer("far", log_level="CRITICAL")
        self._built = server

        def note() -> str:
            """A note."""
            return "a note"

        server.resource("note://first")(note)
        server.prompt("first")(note)

        @server.tool()
        def add(a: int, b: int) -> int:
            """Add two numbers."""
            return a + b

        @server.tool()
        async def hang() -> str:
            """Never answer."""
            self.hanging.set()
            await self.let_go.wait()
            return "let go"

        @server.tool()
        def greet(who: Annotated[Name, Resolve(which_name)]) -> str:
            """Greet somebody."""
            return f"hello {who.name}"

        @server.tool()
        async def send_away(context: Context[Any, Any]) -> str:
            """Ask in the middle of a call, as the newer protocol over HTTP does not let one."""
            await context.elicit_url("Look here", "https://example.com/", "once")
            return "looked"

        @server.tool()
        def large() -> str:
            """Say more than is read."""
            return "x" * BIG

        @server.tool()
        async def grow(context: Context[Any, Any]) -> str:
            """Have a tool more."""
            server.add_tool(add, name="grown")
            await context.notify_tools_changed()
            return "grown"

        @server.tool()
        async def publish(context: Context[Any, Any]) -> str:
            """Let more be read."""
            server.resource("note://published")(note)
            server.prompt("published")(note)
            await context.notify_resources_changed()
            await context.notify_prompts_changed()
            return "published"

        return server

    def wrap(self, app: ASGIApp) -> ASGIApp:
        async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            headers = {k.decode(): v.decode() for k, v in scope["headers"]}
            self.requests.append(headers)
            self.paths.add(scope["path"])
            if self.silent:
                await self.let_go.wait()
            if self.endless:
                await self.drip(send)
                return
            method = headers.get("mcp-method", "")
            if self.holds_listening and method == LISTENING:
                await self.may_listen.wait()
            is_newer = method == "server/discover"
            status = 404 if self.older and is_newer else self.refused.get(method, self.status)
            if status is None:
                await app(scope, receive, send)
                return
            fields = [(b"location", self.location.encode())] if self.location else []
            start = {"type": "http.response.start", "status": status, "headers": fields}
            await send(start)
            await send({"type": "http.response.body", "body": b"what it says"})

        return wrapped


@asynccontextmanager
async def http_tool_server() -> AsyncIterator[HttpToolServer]:
    running = HttpToolServer()
    listening = socket.create_server(("127.0.0.1", 0))
    running.url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    app = running.wrap(running.build().streamable_http_app())
    config = uvicorn.Config(
        app, log_config=None, lifespan="on", timeout_graceful_shutdown=0, ws="none"
    )
    server = running._server = uvicorn.Server(config)
    task = asyncio.create_task(server._serve([listening]), name="tool server over HTTP")
    try:
        yield running
    finally:
        running.let_go.set()
        server.should_exit = True
        await task
        listening.close()
