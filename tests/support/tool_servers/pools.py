"""Pools for tests, servers to put into them, and a look at what is left of them."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import mcp_types
import psutil

from app.tools.entries import versioned
from app.tools.pool.leased import ToolConnection
from app.tools.pool.pool import ToolPool
from app.tools.servers import Credential, HttpTransport, McpServer, StdioTransport, Timeouts
from tenancy.principal import UserId

QUICK = Path(__file__).with_name("stdio.py")
NO_CREDENTIAL = Credential()
SECONDS = 60.0
"""Longer than anything takes here that is not meant to hang, however busy the machine is."""


def somebody() -> UserId:
    return UserId(uuid4())


def quick(
    *behaviour: str, name: str = "quick", env: Mapping[str, str] | None = None, **facts: Any
) -> McpServer:
    """The quick server of this folder, behaving like that; nobody is impatient unless told."""
    arguments = ("-I", "-S", str(QUICK), *behaviour)
    transport = StdioTransport(sys.executable, arguments, dict(env or {}), (str(QUICK.parent),))
    return versioned(McpServer(name, transport, **{"timeouts": impatient(), **facts}))


def at(url: str, name: str = "far", **facts: Any) -> McpServer:
    """A server that is reached at this address."""
    return versioned(McpServer(name, HttpTransport(url), **{"timeouts": impatient(), **facts}))


def impatient(**seconds: float) -> Timeouts:
    return Timeouts(**{"connect": SECONDS, "listing": SECONDS, "call": SECONDS, **seconds})


@asynccontextmanager
async def running_pool(
    folder: Path, sandbox: Literal["auto", "bubblewrap", "none"] = "none", **parts: Any
) -> AsyncIterator[ToolPool]:
    pool = ToolPool(folder / "mcp", sandbox=sandbox, **parts)
    await pool.start()
    try:
        yield pool
    finally:
        await pool.stop()


async def called(
    connection: ToolConnection, tool: str, seconds: float = SECONDS, **arguments: Any
) -> mcp_types.CallToolResult:
    return await connection.call(tool, arguments, meta={}, seconds=seconds)


def text_of(result: mcp_types.CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, mcp_types.TextContent)
    return content.text


async def said(connection: ToolConnection, tool: str, **arguments: Any) -> str:
    return text_of(await called(connection, tool, **arguments))


async def once(
    pool: ToolPool, owner: UserId, server: McpServer, tool: str, **arguments: Any
) -> str:
    """Lease, call, give back."""
    async with pool.lease(owner, server, NO_CREDENTIAL) as connection:
        return await said(connection, tool, **arguments)


async def until(what: Any) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(SECONDS):
        while not what():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.005)


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def descendants() -> Iterator[psutil.Process]:
    """What this process has started, and what that has.

    But no database server, which begins and ends processes whenever it likes.
    """
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            if child.name() != "postgres":
                yield child
                yield from child.children(recursive=True)


def open_descriptors() -> int:
    """How many descriptors are open, those of connections to databases and models left out."""
    found = 0
    networked = {each.fd for each in psutil.Process().net_connections("inet")}
    for each in Path("/proc/self/fd").iterdir():
        found += int(each.name) not in networked
    return found


@dataclass(frozen=True)
class Footprint:
    """What this process has started and opened.

    Other tests' services may be at work in it: what they do for a moment, and what they open to
    go on, is nothing of a pool's.
    """

    processes: frozenset[int] = field(
        default_factory=lambda: frozenset(
            each.pid for each in descendants() if is_running(each.pid)
        )
    )
    descriptors: int = field(default_factory=open_descriptors)
    tasks: Counter[str] = field(
        default_factory=lambda: Counter(
            getattr(each.get_coro(), "__qualname__", "") for each in asyncio.all_tasks()
        )
    )
    """How many there are of each kind."""

    def is_within(self, before: Footprint) -> bool:
        """Whether nothing is there beside what was before."""
        return (
            self.processes <= before.processes
            and self.descriptors <= before.descriptors
            and self.tasks <= before.tasks
        )


async def until_nothing_more_than(before: Footprint) -> None:
    """Wait until all that was started and opened since then is gone."""
    await until(lambda: Footprint().is_within(before))
