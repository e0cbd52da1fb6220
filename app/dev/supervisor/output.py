"""What children print: passed on line by line under their name, the last lines kept."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from typing import TextIO

_CHUNK = 65_536
_LONGEST = 4_000
_KEPT = 20
_NAME_WIDTH = 8


class ChildOutput:
    """The output of one child, over all of its lives."""

    def __init__(self, name: str, sink: TextIO | None = None) -> None:
        self._prefix = f"{name:<{_NAME_WIDTH}} | "
        self._sink = sink or sys.stderr
        self._last: deque[str] = deque(maxlen=_KEPT)

    @property
    def last_lines(self) -> str:
        """The end of what it said."""
        return "\n".join(self._last)

    async def follow(self, stream: asyncio.StreamReader) -> None:
        """Pass on until the stream ends."""
        rest = b""
        while chunk := await stream.read(_CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._pass_on(line)
            if len(rest) > _LONGEST:
                self._pass_on(rest)
                rest = b""
        if rest:
            self._pass_on(rest)

    def _pass_on(self, line: bytes) -> None:
        text = line[:_LONGEST].decode(errors="replace").rstrip()
        self._last.append(text)
        self._sink.write(f"{self._prefix}{text}\n")
        self._sink.flush()
