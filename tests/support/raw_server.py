"""A server that answers byte by byte what a test says, however little sense it makes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import orjson

Answerer = Callable[["Exchange"], Awaitable[None]]


@dataclass
class Exchange:
    """One request, and the connection that it came on."""

    method: str
    path: str
    body: bytes
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, body: bytes, *headers: str, status: str = "200 OK") -> None:
        """Send a whole answer, after which the connection is closed."""
        await self.head(len(body), *headers, status=status)
        await self.send(body)

    async def head(self, length: int, *headers: str, status: str = "200 OK") -> None:
        """Send what comes before a body of so many bytes."""
        said = (*headers, f"Content-Length: {length}", "Connection: close")
        lines = "".join(f"{each}\r\n" for each in said)
        await self.send(f"HTTP/1.1 {status}\r\n{lines}\r\n".encode())


@dataclass
class RawServer:
    """What it answers may be changed while it runs."""

    answerer: Answerer
    url: str = ""
    asked: Counter[str] = field(default_factory=Counter)
    """How often for each path."""
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    """That there was a request since this was cleared."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read one request and answer it."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            method, path, _ = head.split(" ", 2)
            lengths = [line for line in head.lower().splitlines() if "content-length:" in line]
            length = int(lengths[0].partition(":")[2]) if lengths else 0
            body = await reader.readexactly(length)
            self.asked[path] += 1
            self.arrived.set()
            await self.answerer(Exchange(method, path, body, writer))
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client has gone
        finally:
            writer.close()


@asynccontextmanager
async def raw_server(answerer: Answerer) -> AsyncIterator[RawServer]:
    """Serve on a port of its own; whoever still waits for an answer is let go at the end."""
    server = RawServer(answerer)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    before = asyncio.all_tasks()
    try:
        yield server
    finally:
        listening.close()
        for task in asyncio.all_tasks() - before:
            if getattr(task.get_coro(), "__qualname__", "") == RawServer.serve.__qualname__:
                task.cancel()


def json_of(value: object) -> bytes:
    """A value as JSON."""
    return orjson.dumps(value)
