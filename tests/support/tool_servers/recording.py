"""A tool server by HTTP, in the test's process: notes what it is sent, says what it is told to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.support.oauth_server.serving import loopback_socket, served

ANYTHING: dict[str, Any] = {"type": "object"}

Answering = Callable[["Heard"], Awaitable[types.CallToolResult]]


@dataclass
class Heard:
    """One call of a tool, as it came."""

    tool: str
    arguments: Mapping[str, Any]
    meta: Mapping[str, Any]
    headers: Mapping[str, str]
    report: Callable[[float, float | None, str | None], Awaitable[None]]


@dataclass
class Offer:
    """A tool, and what it answers."""

    answer: Answering
    schema: dict[str, Any]
    annotations: types.ToolAnnotations | None
    description: str


class RecordingServer:
    """Several tools, made by the test."""

    def __init__(self, origin: str) -> None:
        self.url = f"{origin}/mcp"
        self.requests: list[dict[str, str]] = []
        """The headers of every request."""
        self.calls: list[Heard] = []
        self.given_up: asyncio.Queue[str] = asyncio.Queue()
        """Tools whose calls were cancelled by whoever made them."""
        self._offers: dict[str, Offer] = {}

    def offer(
        self,
        tool: str,
        answer: Answering | types.CallToolResult | str = "done",
        *,
        schema: dict[str, Any] = ANYTHING,
        annotations: types.ToolAnnotations | None = None,
        description: str = "Does something.",
    ) -> None:
        """Offer a tool, in place of what it was before."""
        said = answer if callable(answer) else _always(answer)
        self._offers[tool] = Offer(said, schema, annotations, description)

    def made(self, tool: str) -> list[Heard]:
        """The calls of one tool."""
        return [call for call in self.calls if call.tool == tool]

    def app(self) -> ASGIApp:
        """What answers."""
        server = Server("recording", on_list_tools=self._list, on_call_tool=self._call)
        inner = server.streamable_http_app()

        async def noted(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                sent = {name.decode(): value.decode() for name, value in scope["headers"]}
                self.requests.append(sent)
            await inner(scope, receive, send)

        return noted

    async def _list(self, context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name,
                    description=offer.description,
                    input_schema=offer.schema,
                    annotations=offer.annotations,
                )
                for name, offer in self._offers.items()
            ]
        )

    async def _call(
        self, context: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        heard = Heard(
            params.name,
            params.arguments or {},
            dict(context.meta or {}),
            dict(context.request.headers),
            context.session.report_progress,
        )
        self.calls.append(heard)
        try:
            return await self._offers[params.name].answer(heard)
        except asyncio.CancelledError:
            self.given_up.put_nowait(params.name)
            raise


def text(said: str, *, is_error: bool = False) -> types.CallToolResult:
    """A result of one text."""
    return types.CallToolResult(content=[types.TextContent(text=said)], is_error=is_error)


def _always(answer: types.CallToolResult | str) -> Answering:
    result = text(answer) if isinstance(answer, str) else answer

    async def say(heard: Heard) -> types.CallToolResult:
        return result

    return say


async def repeat(heard: Heard) -> types.CallToolResult:
    """Answer with all that was sent, headers included."""
    sent = {"arguments": heard.arguments, "meta": heard.meta, "headers": heard.headers}
    return text(json.dumps(sent, default=str))


@asynccontextmanager
async def recording_server() -> AsyncIterator[RecordingServer]:
    """Run one."""
    listening, origin = loopback_socket()
    server = RecordingServer(origin)
    async with served(server.app(), listening):
        yield server
