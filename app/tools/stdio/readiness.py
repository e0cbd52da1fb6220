"""What children need of this machine, looked at before anybody wants one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import structlog

from app.settings import SettingsError
from app.tools.servers import McpServer, StdioTransport
from app.tools.stdio.command import find_program

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

log = structlog.get_logger(__name__)


def get_ready(servers: Iterable[McpServer], folders: Path) -> None:
    """Make the folder for their folders, and tell the log of programs that are not there.

    One server's program is no reason to serve nobody.

    Raises:
        SettingsError: the folder cannot be made, or not be written to.
    """
    children = [(each.name, each.transport) for each in servers]
    programs = {name: way.command for name, way in children if isinstance(way, StdioTransport)}
    if not programs:
        return
    _make_writable(folders)
    for name, command in programs.items():
        if find_program(command) is None:
            log.warning("a tool server's program is missing", server=name, program=command)


def _make_writable(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        why = None if os.access(folder, os.W_OK | os.X_OK) else "there is no permission to write"
    except OSError as error:
        why = error.strerror
    if why is not None:
        raise SettingsError(
            f"STOA_MCP_FOLDER: {folder.absolute()} cannot be used: {why}."
            " Name a folder that lasts, for what tool servers keep of each person"
        )
