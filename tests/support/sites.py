"""Sites on loopback that answer with whatever bytes a test wants, and remember who asked."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

Reply = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]


class Site:
    """One site. ``asked`` are the paths of its requests, ``heads`` all that came before a body."""

    def __init__(self, replies: Mapping[str, Reply]) -> None:
        self.replies = dict(replies)
        self.asked: list[str] = []
        self.heads: list[str] = []
        self.connections = 0
        self.left = asyncio.Event()
        """Set when a client has gone."""
        self.url = ""

    @property
    def trusted(self) -> frozenset[str]:
        """What lets a guarded client in here, though this is loopback."""
        return frozenset({self.url})

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            path = head.split(" ")[1]
            self.heads.append(head)
            self.asked.append(path)
            reply = self.replies.get(path, answer(b"", status="404 Not Found"))
            if isinstance(reply, bytes):
                writer.write(reply)
            else:
                await reply(writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.left.set()
            writer.close()


def answer(body: bytes, *, status: str = "200 OK", **headers: str) -> bytes:
    """A whole answer, after which the connection is closed."""
    fields = {"Content_Type": "text/html", "Content_Length": str(len(body)), "Connection": "close"}
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in (fields | headers).items()]
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode() + body


def redirect(location: str, status: str = "302 Found") -> bytes:
    return answer(b"", status=status, Location=location)


@asynccontextmanager
async def site(
    replies: Mapping[str, Reply] | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    name: str | None = None,
) -> AsyncIterator[Site]:
    served = Site(replies or {})
    listener = await asyncio.start_server(served.serve, host, port, ssl=tls)
    scheme = "http" if tls is None else "https"
    served.url = f"{scheme}://{name or host}:{listener.sockets[0].getsockname()[1]}"
    async with listener:
        yield served


def certificate(folder: Path, name: str) -> Path:
    """A certificate of its own making for one name, its key beside it as ``key.pem``."""
    path = folder / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-nodes", "-days", "1", "-subj", "/CN=site"),
            *("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-addext", f"subjectAltName=DNS:{name}"),
            *("-keyout", str(folder / "key.pem"), "-out", str(path)),
        ],
        check=True,
        capture_output=True,
    )
    return path
