"""What the page for authors shows works as it stands there, as a server of its own."""

from __future__ import annotations

import re
import sqlite3
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import mcp_types
import psutil
import pytest

from app.tools.entries import versioned
from app.tools.pool.failures import ToolServerUnavailable
from app.tools.servers import McpServer, StdioTransport
from tests.support.tool_servers.pools import (
    NO_CREDENTIAL,
    SECONDS,
    descendants,
    impatient,
    is_running,
    running_pool,
    somebody,
    text_of,
    until,
)

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "mcp-servers.md").read_text(encoding="utf-8")
HEART, SERVER = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
KEY = "stoa.dev/idempotency-key"


@pytest.fixture
def program(tmp_path: Path) -> McpServer:
    """The two blocks of the page, in one file."""
    head, tail = SERVER.split("\n\n\n", 1)
    file = tmp_path / "server.py"
    file.write_text(f"{head}\n\n\n{HEART}\n\n\n{tail}", encoding="utf-8")
    transport = StdioTransport(sys.executable, (str(file),))
    return versioned(McpServer("notes", transport, timeouts=impatient()))


class TestTheTenLines:
    def test_are_ten(self) -> None:
        assert len(HEART.strip().splitlines()) == 10


class TestTheServerOfThePage:
    async def test_does_once_what_it_is_told_again_after_it_was_killed(
        self, program: McpServer, tmp_path: Path
    ) -> None:
        person = somebody()
        async with running_pool(tmp_path) as pool:

            async def add(text: str, key: str | None) -> mcp_types.CallToolResult:
                meta: dict[str, Any] = {} if key is None else {KEY: key}
                async with pool.lease(person, program, NO_CREDENTIAL) as connection:
                    return await connection.call("add", {"text": text}, meta=meta, seconds=SECONDS)

            first = await add("buy milk", "k")
            await kill_it()
            with suppress(ToolServerUnavailable):  # where its end was not noticed yet
                await add("buy milk", "k")
            again = await add("buy milk", "k")
            other = await add("sell milk", "k")
            unkeyed = await add("buy milk", None)
        assert not first.is_error
        assert again == first
        assert (other.is_error, "Nothing was done" in text_of(other)) == (True, True)
        assert not unkeyed.is_error
        assert notes_in(tmp_path) == ["buy milk", "buy milk"]


async def kill_it() -> None:
    """What it runs as, without a word before; returns when it is gone."""
    (running,) = [child for child in descendants() if is_of_the_page(child)]
    running.kill()
    await until(lambda: not is_running(running.pid))


def is_of_the_page(process: psutil.Process) -> bool:
    try:
        return any(each.endswith("server.py") for each in process.cmdline())
    except psutil.NoSuchProcess:
        return False


def notes_in(folder: Path) -> list[str]:
    (file,) = (folder / "mcp").rglob("notes.db")
    with closing(sqlite3.connect(file)) as db:
        return [text for (text,) in db.execute("SELECT text FROM notes")]
