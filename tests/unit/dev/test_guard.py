"""The guard: what it starts cannot outlive the starter."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import textwrap
from pathlib import Path

import psutil
import pytest

from app.dev.child import GUARD, end, start_guarded

SLEEPER = (
    sys.executable,
    "-I",
    "-S",
    "-c",
    "import time; print('up', flush=True); time.sleep(600)",
)
PATIENCE = 60.0
# A starter that dies without a word, as after kill -9, once its child runs and was looked at.
STARTER = """
import os, subprocess, sys
guard, watch, *command = sys.argv[1:]
options = [guard, "--parent", str(os.getpid()), "--signal", "15", *watch.split(), "--", *command]
child = subprocess.Popen(
    [sys.executable, "-I", "-S", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    start_new_session=True)
child.stdout.readline()
print(child.pid, flush=True)
sys.stdin.readline()
os.kill(os.getpid(), 9)
"""


class TestAStarterThatIsKilled:
    @pytest.mark.parametrize("watch", ["", "--watch"], ids=["by the kernel", "by a pipe"])
    async def test_takes_its_child_with_it(self, watch: str) -> None:
        starter = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            textwrap.dedent(STARTER),
            str(GUARD),
            watch,
            *SLEEPER,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert starter.stdin is not None
        assert starter.stdout is not None
        group = _alive(int(await starter.stdout.readline()))
        starter.stdin.close()
        assert await starter.wait() == -signal.SIGKILL
        await _until_gone(group)


class TestAChild:
    async def test_gets_the_signals_in_turn_and_its_status_is_known(self) -> None:
        process = await start_guarded(SLEEPER)
        assert process.stdout is not None
        assert await process.stdout.readline() == b"up\n"
        assert await end(process, ((signal.SIGTERM, PATIENCE),)) == -signal.SIGTERM

    async def test_that_ignores_the_polite_signal_is_killed_with_its_group(self) -> None:
        stubborn = (
            "import signal, subprocess, sys, time\n"
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
            "print(child.pid, flush=True)\n"
            "time.sleep(600)\n"
        )
        process = await start_guarded((sys.executable, "-c", stubborn))
        assert process.stdout is not None
        grandchild = _alive(int(await process.stdout.readline()))
        assert await end(process, ((signal.SIGTERM, 0.1),)) == -signal.SIGKILL
        await _until_gone(grandchild)

    async def test_is_not_reached_by_the_terminals_interrupt(self) -> None:
        process = await start_guarded(SLEEPER)
        assert process.stdout is not None
        await process.stdout.readline()
        assert os.getpgid(process.pid) != os.getpgid(os.getpid())
        await end(process, ((signal.SIGTERM, PATIENCE),))


def _alive(pid: int) -> list[psutil.Process]:
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


async def _until_gone(processes: list[psutil.Process]) -> None:
    """Until each has ended, whoever has still to take note of that."""
    async with asyncio.timeout(PATIENCE):
        while any(map(_goes_on, processes)):  # noqa: ASYNC110 - they are nobody's children here
            await asyncio.sleep(0.01)


def _goes_on(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_the_guard_needs_nothing_but_the_standard_library() -> None:
    assert Path(GUARD).read_text().count("import app") == 0
