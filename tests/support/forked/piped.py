"""A forked process whose output is read as it comes, as that of a child of asyncio's is."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import IO

from tests.support.forked.running import Running


@dataclass(frozen=True)
class Piped:
    """A running process and its output, errors among it."""

    _process: Running
    stdout: asyncio.StreamReader

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    async def wait(self) -> int:
        return await self._process.wait()

    def send_signal(self, number: int, /) -> None:
        self._process.send_signal(number)

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()


async def piped(start: Callable[[IO[bytes]], Coroutine[None, None, Running]]) -> Piped:
    """What ``start`` starts with the output that it is given."""
    ours, theirs = os.pipe()
    output = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(output)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(ours, "rb"))
    with os.fdopen(theirs, "wb") as file:
        return Piped(await start(file), output)
