"""One long-lived ``stoa`` process of a deployment, with its log in a file."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from app.dev.child import start_guarded
from tests.support import forked, leaks
from tests.support.development import STOA
from tests.support.environment import inherited_environment
from tests.support.faulty.fault import Fault
from tests.support.held_ports import held_port
from tests.support.tls import NO_AUTHORITY

FAULTY = (sys.executable, "-m", "tests.support.faulty")
"""``stoa`` with a fault armed."""
PATIENCE = 120.0
"""Longer than any start takes on a busy machine; a process that ends is noticed at once."""
_LOOK_EVERY = 0.02


@dataclass
class StoaProcess:
    """A running command of Stoa's."""

    name: str
    process: forked.Running
    log: Path
    url: str = ""
    """Where it answers; empty for a worker."""
    turn: socket.socket | None = None
    """What a spare one waits at."""

    @property
    def output(self) -> str:
        """Everything it has logged so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    @property
    def memory(self) -> int:
        """Resident bytes now."""
        return int(psutil.Process(self.process.pid).memory_info().rss)

    async def kill(self) -> None:
        """End it as ``kill -9`` does, and wait until it is gone."""
        self.process.kill()
        await self.process.wait()

    async def let_go(self) -> None:
        """Have a spare worker begin, and wait until it claims."""
        assert self.turn is not None
        self.turn.send(b"!")
        await self.logged("worker ready")

    def freeze(self) -> None:
        """Let it stand still."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)

    async def terminate(self) -> int:
        """Ask it to end as an orchestrator does; returns its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return await self.process.wait()

    async def died(self) -> None:
        """Return once it was killed, by itself or by somebody else."""
        async with asyncio.timeout(PATIENCE):
            assert await self.process.wait() == -signal.SIGKILL, self.output

    async def stopped(self) -> bool:
        """Return once it stands still, as after SIGSTOP; False if it ends instead."""
        async with asyncio.timeout(PATIENCE):
            while self.process.returncode is None:
                with contextlib.suppress(psutil.NoSuchProcess):
                    if psutil.Process(self.process.pid).status() == psutil.STATUS_STOPPED:
                        return True
                await asyncio.sleep(_LOOK_EVERY)
        return False

    async def logged(self, text: str) -> None:
        """Return once it has logged this."""
        async with asyncio.timeout(PATIENCE):
            while text not in self.output:
                self._assert_alive()
                await asyncio.sleep(_LOOK_EVERY)

    async def answering(self) -> None:
        """Return once it serves requests, with everything that it needs."""
        async with httpx.AsyncClient(
            base_url=self.url, trust_env=False, verify=NO_AUTHORITY
        ) as client:
            async with asyncio.timeout(PATIENCE):
                while not await _is_ready(client):
                    self._assert_alive()
                    await asyncio.sleep(_LOOK_EVERY)

    def _assert_alive(self) -> None:
        assert self.process.returncode is None, f"{self.name} ended:\n{self.output}"


@asynccontextmanager
async def web_process(
    environment: Mapping[str, str],
    log: Path,
    port: int | None = None,
    fault: Fault | None = None,
    *,
    shipped: bool = False,
) -> AsyncIterator[StoaProcess]:
    """``stoa web``, ready; killed when the block ends. Until then its port is nobody else's."""
    with held_port(port or 0) as held:
        options = ("--port", str(held))
        async with _running("web", environment, log, *options, fault=fault, shipped=shipped) as web:
            web.url = f"http://127.0.0.1:{held}"
            await web.answering()
            yield web


@asynccontextmanager
async def worker_process(
    environment: Mapping[str, str], log: Path, *, shipped: bool = False
) -> AsyncIterator[StoaProcess]:
    """``stoa worker``, claiming; killed when the block ends."""
    async with _running("worker", environment, log, shipped=shipped) as worker:
        await worker.logged("worker ready")
        yield worker


@asynccontextmanager
async def faulty_worker_process(
    environment: Mapping[str, str], log: Path, fault: Fault
) -> AsyncIterator[StoaProcess]:
    """``stoa worker`` with a fault, not waited for: it may fail before it is ready."""
    async with _running("worker", environment, log, fault=fault) as worker:
        yield worker


@asynccontextmanager
async def spare_worker_process(
    environment: Mapping[str, str], log: Path, fault: Fault | None = None
) -> AsyncIterator[StoaProcess]:
    """``stoa worker`` with its imports done, which begins when it is let go."""
    ours, theirs = socket.socketpair()
    options = ("--turn-socket", str(theirs.fileno()))
    passed = (theirs.fileno(),)
    with ours:
        async with _running(
            "worker", environment, log, *options, fault=fault, passed=passed
        ) as worker:
            theirs.close()
            worker.turn = ours
            yield worker


@asynccontextmanager
async def _running(
    name: str,
    environment: Mapping[str, str],
    log: Path,
    *options: str,
    fault: Fault | None = None,
    passed: Sequence[int] = (),
    shipped: bool = False,
) -> AsyncIterator[StoaProcess]:
    armed = {} if fault is None else fault.environment
    own = {**inherited_environment(), **environment, **armed}
    arguments = (name, *options)
    with log.open("wb") as file:
        process: forked.Running
        if shipped or not sys.platform.startswith("linux"):
            program = STOA if fault is None else FAULTY
            process = await start_guarded(
                (*program, *arguments), env=own, cwd=Path("/"), stdout=file, pass_fds=passed
            )
        else:
            process = await forked.start(
                arguments,
                environment=own,
                folder=Path("/"),
                output=file,
                passed=passed,
                faulty=fault is not None,
            )
    running = StoaProcess(name, process, log)
    try:
        yield running
    finally:
        await forked.end(process)
        leaks.search("log", running.output, f"stoa {name}")


async def _is_ready(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get("/ready")).status_code == 200
    except httpx.TransportError:
        return False
