"""One process of the deployment: its way to Postgres, and what can be done to it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import httpx

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import IO

    from app.bench.chaos.wire import Wire

_LOOK_EVERY = 0.1
_LOST = "lost its lease"
"""What a worker says that ends for that."""

Kind = Literal["web", "worker"]


class Spawn(Protocol):
    """Starts a child process that ends with this one, in a process group of its own."""

    async def __call__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = ...,
        stdout: int | IO[bytes] = ...,
        pass_fds: Sequence[int] = ...,
    ) -> asyncio.subprocess.Process:
        """Start the command."""
        ...


@dataclass(eq=False, slots=True)
class Member:
    """A web process or a worker. It waits after its imports until it is let go."""

    kind: Kind
    process: asyncio.subprocess.Process
    wire: Wire
    origin: str
    """Where a web process answers."""
    _turn: socket.socket

    log: Path
    """What it says."""
    is_held: bool = False
    """Whether it stands still or is cut off at the moment."""

    def __str__(self) -> str:
        return f"{self.log.stem} (pid {self.process.pid})"

    @property
    def has_ended_in_order(self) -> bool:
        """Whether it ended as it should when it is asked to: uvicorn passes the signal on.

        A lease that is as short as here may be lost meanwhile, where the machine stands still.
        """
        in_order = {0} if self.kind == "worker" else {0, -signal.SIGTERM}
        return self.process.returncode in in_order or _LOST in self.log.read_text()

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self.process.returncode is None

    def let_go(self) -> None:
        """Let it begin to work."""
        with suppress(OSError):
            self._turn.send(b"!")

    def send(self, number: signal.Signals) -> None:
        """Send it a signal; harmless if it has ended."""
        with suppress(ProcessLookupError):
            self.process.send_signal(number)

    async def ready(self, http: httpx.AsyncClient) -> None:
        """Return once it does its work, or has ended."""
        while self.is_alive and not await self._is_ready(http):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(_LOOK_EVERY)

    async def _is_ready(self, http: httpx.AsyncClient) -> bool:
        if self.kind == "worker":
            return "worker ready" in self.log.read_text()
        try:
            return (await http.get(f"{self.origin}/ready")).is_success
        except httpx.TransportError:
            return False

    async def ended(self) -> int:
        """Wait until it has ended and clear up after it; returns its status."""
        status = await self.process.wait()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self._turn.close()
        await self.wire.close()
        return status


async def spawn_member(
    spawn: Spawn, kind: Kind, environment: Mapping[str, str], wire: Wire, log: Path
) -> Member:
    """Start a process up to the point where it waits to be let go."""
    ours, theirs = socket.socketpair()
    port = _free_port()
    options = ["--port", str(port)] if kind == "web" else []
    with theirs, log.open("ab") as file:
        process = await spawn(
            [
                *(sys.executable, "-m", "app.cli", kind, *options),
                *("--turn-socket", str(theirs.fileno())),
            ],
            env=environment,
            stdout=file,
            pass_fds=[theirs.fileno()],
        )
    return Member(kind, process, wire, f"http://127.0.0.1:{port}", ours, log)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
