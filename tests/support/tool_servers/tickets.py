"""The example server as its own processes, and what its file says has happened."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import app
from app.dev.child import start_guarded
from tests.support.tool_servers.pools import SECONDS
from tests.support.tool_servers.real import is_answering, reserved_port

MODULE = "app.tools.examples.tickets"
SOURCE = Path(app.__file__).parent
"""What a sandboxed child of a checkout must be able to read."""


def arguments(file: Path | str, *more: str) -> tuple[str, ...]:
    """What starts it, after the name of Python."""
    return ("-m", MODULE, "--file", str(file), *more)


@dataclass(frozen=True)
class TicketsFile:
    """What a server keeps, read beside it."""

    path: Path

    def changes(self, number: int | None = None) -> list[tuple[str, str]]:
        """Every effect there was, or those on one ticket: what was done, and its note."""
        which = "" if number is None else f"WHERE number = {number}"
        return self._rows(f"SELECT what, note FROM changes {which} ORDER BY change")

    def results(self) -> dict[str, str]:
        """What was answered first under each key, as the model reads it."""
        return {key: _text(kept) for key, kept in self._rows("SELECT key, result FROM keys")}

    def execute(self, statement: str) -> None:
        with closing(sqlite3.connect(self.path)) as db, db:
            db.execute(statement)

    def _rows(self, query: str) -> list[Any]:
        with closing(sqlite3.connect(self.path)) as db:
            return db.execute(query).fetchall()


def _text(kept: str) -> str:
    return "\n\n".join(each["text"] for each in json.loads(kept)["content"])


@asynccontextmanager
async def tickets_over_http(file: Path, *more: str) -> AsyncIterator[str]:
    """Run it; its address."""
    with reserved_port() as port:
        process = await start_guarded(
            (sys.executable, *arguments(file, "--http", str(port), *more)),
            cwd=SOURCE.parent,
            stdout=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(SECONDS):
                while not await is_answering(port):  # noqa: ASYNC110 - nothing tells of it
                    await asyncio.sleep(0.02)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
