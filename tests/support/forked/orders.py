"""The way to the process with the imports: what it is told to fork, and how that ends."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from tests.support.forked.running import Forked, Running

_NUMBER_BYTES = 4


class Orders:
    """The end of a socket at whose other one somebody forks."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control

    async def start(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        output: IO[bytes],
        passed: Sequence[int],
        *,
        faulty: bool,
    ) -> Running:
        order = {
            "arguments": [*arguments],
            "environment": {**environment},
            "folder": str(folder),
            "numbers": [1, *passed],
            "faulty": faulty,
        }
        ours, theirs = socket.socketpair()
        with theirs:
            files = [theirs.fileno(), output.fileno(), *passed]
            socket.send_fds(self._control, [json.dumps(order).encode()], files)
        reader, writer = await asyncio.open_connection(sock=ours)
        pid = await _number(reader)
        return Forked(pid, asyncio.create_task(_last_number(reader, writer)))

    def close(self) -> None:
        """Have no more forked; those that run are killed."""
        self._control.close()


async def _number(reader: asyncio.StreamReader) -> int:
    return int.from_bytes(await reader.readexactly(_NUMBER_BYTES), "big", signed=True)


async def _last_number(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
    try:
        return await _number(reader)
    finally:
        writer.close()
