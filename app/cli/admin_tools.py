"""``stoa admin tools``: whether the tool servers of the catalogue work on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.console import console
from app.cli.failures import FAILED


def tools(
    names: Annotated[
        list[str] | None, typer.Argument(help="Which servers; all, unless named.")
    ] = None,
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Try the servers of STOA_MCP_CONFIG: start, connect, list, and end them.

    As a person who does not exist, in a folder that is deleted afterwards, in the sandbox that
    workers of these settings would use. Shows what a server that fails writes to its standard
    error. Those that need a person's key or authorization are only read. Connects to no database.

    Exits 1 when one does not work.
    """
    import asyncio

    from app.admin.tool_servers import AVAILABLE, try_servers
    from app.admin.tool_servers_report import tool_servers_report
    from app.settings import load_settings

    found = asyncio.run(try_servers(load_settings(), names or []))
    if json:
        from pydantic import TypeAdapter

        from app.admin.tool_servers import ToolServerView

        typer.echo(TypeAdapter(list[ToolServerView]).dump_json(found, indent=2).decode())
    else:
        console().print(tool_servers_report(found))
    if any(each.state != AVAILABLE and not each.state.startswith("needs_") for each in found):
        raise typer.Exit(FAILED)
