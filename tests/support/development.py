"""``stoa dev`` as a person starts it: a real process, and everything that it starts."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import psutil

from app.dev.child import RunAs, end, start_guarded
from tests.support import forked, leaks
from tests.support.environment import inherited_environment
from tests.support.held_ports import held_port

READY = "Stoa is ready"
STOA = (sys.executable, "-m", "app.cli")


class Command:
    """One run of ``stoa``."""

    def __init__(self, process: asyncio.subprocess.Process | forked.Piped) -> None:
        self.process = process
        self.output = ""
        self._read = 0
        self._seen: list[psutil.Process] = []

    @property
    def pid(self) -> int:
        return self.process.pid

    async def until(self, text: str) -> bool:
        """Read on until it says this, once more if it did before; ``False`` if it ends first."""
        assert self.process.stdout is not None
        while (found := self.output.find(text, self._read)) < 0:
            chunk = await self.process.stdout.read(65_536)
            if not chunk:
                return False
            self.output += chunk.decode(errors="replace")
        self._read = found + len(text)
        return True

    async def ended(self) -> int:
        """Read until it ends, and return its exit status."""
        assert self.process.stdout is not None
        self.output += (await self.process.stdout.read()).decode(errors="replace")
        return await self.process.wait()

    def processes(self) -> dict[str, psutil.Process]:
        """Everything that runs below it now, by the name of the command."""
        self._seen = psutil.Process(self.pid).children(recursive=True)
        names = [(_name(process), process) for process in self._seen]
        return {name: process for name, process in names if name is not None}

    async def leaves_nothing(self) -> bool:
        """Say whether all that :meth:`processes` saw is gone, or goes in a moment."""
        _, alive = await asyncio.to_thread(psutil.wait_procs, self._seen, 30)
        return all(map(_is_dead, alive))

    def interrupt(self, number: signal.Signals = signal.SIGINT) -> None:
        """What a terminal's Ctrl-C sends."""
        self.process.send_signal(number)


def _name(process: psutil.Process) -> str | None:
    """What it is called; None for one that is gone by now, as those of PostgreSQL's may be."""
    try:
        command = process.cmdline()
        if "app.cli" in command:
            return command[command.index("app.cli") + 1]
        if not command or "tests.support.forked" in command:
            return process.name()
    except psutil.NoSuchProcess:
        return None
    return Path(command[0]).name


def _is_dead(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@asynccontextmanager
async def stoa(
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    run_as: RunAs | None = None,
    program: Sequence[str] = STOA,
) -> AsyncIterator[Command]:
    """Run a command of Stoa's in a folder without settings, and end it afterwards."""
    command = (*program, *arguments)
    process = await start_guarded(
        command,
        run_as=run_as,
        env={**inherited_environment(), **(environment or {})},
        cwd=Path("/"),
        on_death=signal.SIGTERM,
    )
    running = Command(process)
    try:
        yield running
    finally:
        await end(process, ((signal.SIGTERM, 20.0),))
        leaks.search("log", running.output, f"stoa {arguments[0]}")


@asynccontextmanager
async def development(
    data: Path, ollama: str | None, *, at: int | None = None, **more: str
) -> AsyncIterator[str]:
    """``stoa dev`` on this folder, ready; yields its address.

    With this model server, or without one of its own, where the settings name pools.
    """
    environment = more if ollama is None else {"STOA_OLLAMA_URL": ollama, **more}
    with held_port(at or 0) as port:
        arguments = ("dev", "--data", str(data), "--port", str(port))
        async with forked_stoa(*arguments, environment=environment) as command:
            assert await command.until(f"{READY}: http://localhost:{port}"), command.output
            listening = asyncio.create_task(command.ended())
            yield f"http://localhost:{port}"
            command.interrupt()
            await listening


@asynccontextmanager
async def forked_stoa(*arguments: str, environment: Mapping[str, str]) -> AsyncIterator[Command]:
    """The same as :func:`stoa`, with all imports of all its programs done where that can be."""
    if not sys.platform.startswith("linux"):
        async with stoa(*arguments, environment=environment) as command:
            yield command
        return
    own = {**inherited_environment(), **environment}
    process = await forked.piped(
        lambda output: forked.start(arguments, environment=own, folder=Path("/"), output=output)
    )
    try:
        yield Command(process)
    finally:
        with contextlib.suppress(ProcessLookupError, TimeoutError):
            process.terminate()
            async with asyncio.timeout(20):
                await process.wait()
        await forked.end(process)
