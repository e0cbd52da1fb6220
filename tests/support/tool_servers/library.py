"""A tool server by HTTP, in the test's process, of which resources and prompts can be read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from starlette.types import ASGIApp

from tests.support.oauth_server.serving import loopback_socket, served


class LibraryServer:
    """Gives out the texts that a test puts into it, and notes who reads them."""

    def __init__(self, origin: str) -> None:
        self.url = f"{origin}/mcp"
        self.resources: dict[str, str | None] = {}
        """Texts by their addresses; None: an error."""
        self.prompts: dict[str, str] = {}
        self.reads: list[tuple[str, str | None]] = []
        """What was read, and with which credential."""

    def app(self) -> ASGIApp:
        """What answers."""
        server: Server[Any] = Server(
            "library",
            on_list_tools=self._list_tools,
            on_list_resources=self._list_resources,
            on_read_resource=self._read,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get,
        )
        return server.streamable_http_app()

    async def _list_tools(self, context: Any, params: Any) -> types.ListToolsResult:
        tool = types.Tool(name="lend", description="Lends.", input_schema={"type": "object"})
        return types.ListToolsResult(tools=[tool])

    async def _list_resources(self, context: Any, params: Any) -> types.ListResourcesResult:
        listed = [
            types.Resource(name=uri.rpartition("/")[2], title=f"Title of {uri}", uri=uri)
            for uri in self.resources
        ]
        return types.ListResourcesResult(resources=listed)

    async def _list_prompts(self, context: Any, params: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[types.Prompt(name=name) for name in self.prompts])

    async def _read(
        self, context: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        said = self.resources[self._noted(context, str(params.uri))]
        if said is None:
            raise ValueError("the library is on fire")
        contents = types.TextResourceContents(uri=params.uri, text=said)
        return types.ReadResourceResult(contents=[contents])

    async def _get(
        self, context: Any, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        said = self.prompts[self._noted(context, params.name)]
        message = types.PromptMessage(role="user", content=types.TextContent(text=said))
        return types.GetPromptResult(messages=[message])

    def _noted(self, context: Any, name: str) -> str:
        headers: Mapping[str, str] = context.request.headers
        self.reads.append((name, headers.get("authorization")))
        return name


@asynccontextmanager
async def library_server() -> AsyncIterator[LibraryServer]:
    """Run one."""
    listening, origin = loopback_socket()
    server = LibraryServer(origin)
    async with served(server.app(), listening):
        yield server
