"""A small tool server for benches: one tool, which says what it was told.

python -m app.bench.tool_server stdio
python -m app.bench.tool_server http PORT
"""

from __future__ import annotations

import asyncio
import sys

import mcp_types as types
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

TOOL = "repeat"
_SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
}


async def _list(
    _: ServerRequestContext, __: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    tool = types.Tool(name=TOOL, description="Says what it is told.", input_schema=_SCHEMA)
    return types.ListToolsResult(tools=[tool])


async def _call(
    _: ServerRequestContext, params: types.CallToolRequestParams
) -> types.CallToolResult:
    said = (params.arguments or {})["text"]
    return types.CallToolResult(content=[types.TextContent(text=said)])


async def _speak(server: Server) -> None:
    async with stdio_server() as (heard, said):
        await server.run(heard, said, server.create_initialization_options())


def main(way: str, port: str = "0") -> None:
    """Serve until the end of the input, or a signal."""
    server = Server("bench", on_list_tools=_list, on_call_tool=_call)
    if way == "stdio":
        asyncio.run(_speak(server))
    else:
        uvicorn.run(server.streamable_http_app(), port=int(port), log_level="error")


if __name__ == "__main__":
    main(*sys.argv[1:])
