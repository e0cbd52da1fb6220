"""Asking a local server whether it answers."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

_SECONDS = 2.0


async def fetch(url: str, seconds: float = _SECONDS) -> tuple[int, bytes] | None:
    """GET a plain http URL; its status and body, ``None`` without an answer.

    By hand, because an HTTP client takes longer to import than the server takes to start.
    """
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 80
    # 1.0: the answer ends with the connection and is never cut into chunks.
    request = f"GET {parts.path or '/'} HTTP/1.0\r\nHost: {host}:{port}\r\n\r\n"
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(request.encode("ascii"))
                head, _, body = (await reader.read()).partition(b"\r\n\r\n")
                return int(head.split(b" ", 2)[1]), body
            finally:
                writer.close()
    except (OSError, TimeoutError, ValueError, IndexError):
        return None


async def answers(url: str) -> bool:
    """Say whether a server answers 200 here."""
    answer = await fetch(url)
    return answer is not None and answer[0] == 200  # noqa: PLR2004
