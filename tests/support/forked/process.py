"""The tests' end: starts ``stoa`` by having it forked, and waits for it as for any child."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from app.dev.child import GUARD
from tests.support.environment import inherited_environment
from tests.support.forked.orders import Orders
from tests.support.forked.running import Running


class _Imported:
    """The process that forks: one for all tests of this process, started with the first order."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.orders = Orders(ours)
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

    def stop(self) -> None:
        self.orders.close()
        self._process.wait()


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
    orders = _imported[0].orders
    return await orders.start(arguments, environment, folder, output, passed, faulty=faulty)


async def end(process: Running) -> None:
    """Kill it and everything that it started in its session, which it may be yet to begin."""
    for kill in (process.kill, lambda: os.killpg(process.pid, signal.SIGKILL)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill()
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
