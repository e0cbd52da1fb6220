"""The tests' end: starts ``stoa`` by having it forked, and waits for it as for any child."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from app.dev.child import GUARD
from tests.support.development import inherited_environment

_NUMBER_BYTES = 4


class Running(Protocol):
    """A process that was started, however that was done."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    async def wait(self) -> int: ...
    def send_signal(self, signal: int, /) -> None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


@dataclass(frozen=True)
class _Forked:
    pid: int
    _ending: asyncio.Task[int]

    @property
    def returncode(self) -> int | None:
        return self._ending.result() if self._ending.done() else None

    async def wait(self) -> int:
        return await asyncio.shield(self._ending)

    def send_signal(self, number: int, /) -> None:
        if self._ending.done():
            raise ProcessLookupError
        os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class _Imported:
    """The process that forks: one for all tests of this process, started with the first order."""

    def __init__(self) -> None:
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            guarded = [sys.executable, "-I", "-S", str(GUARD), "--parent", str(os.getpid())]
            guarded += ["--signal", str(int(signal.SIGKILL)), "--", sys.executable]
            self._process = subprocess.Popen(
                [*guarded, "-m", "tests.support.forked", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                env=inherited_environment(),
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )

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
            socket.send_fds(self._orders, [json.dumps(order).encode()], files)
        reader, writer = await asyncio.open_connection(sock=ours)
        pid = await _number(reader)
        return _Forked(pid, asyncio.create_task(_last_number(reader, writer)))

    def stop(self) -> None:
        self._orders.close()
        self._process.wait()


async def _number(reader: asyncio.StreamReader) -> int:
    return int.from_bytes(await reader.readexactly(_NUMBER_BYTES), "big", signed=True)


async def _last_number(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
    try:
        return await _number(reader)
    finally:
        writer.close()


_imported: list[_Imported] = []


async def start(
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: Path,
    output: IO[bytes],
    passed: Sequence[int] = (),
    faulty: bool = False,
) -> Running:
    """Start ``stoa`` with these arguments, in a session of its own; it is killed with this process.

    ``environment`` is all that it gets; a ``faulty`` one arms the fault that stands in it. Output
    and errors go to ``output``. ``passed`` are open files that it keeps under their numbers.
    """
    if not _imported:
        _imported.append(_Imported())
    forking = _imported[0]
    return await forking.start(arguments, environment, folder, output, passed, faulty=faulty)


async def end(process: Running) -> None:
    """Kill it and everything that it started in its session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


async def run(arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str]:
    """Exit status and output of a command that ends by itself."""
    with tempfile.TemporaryFile() as output:
        own = {**inherited_environment(), **environment}
        process = await start(arguments, environment=own, folder=Path("/"), output=output)
        try:
            status = await process.wait()
        finally:
            await end(process)
        output.seek(0)
        return status, output.read().decode()


def stop() -> None:
    """End the process with the imports, if there is one."""
    while _imported:
        _imported.pop().stop()
