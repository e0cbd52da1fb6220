"""One child process that cannot outlive this one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

GUARD = Path(__file__).with_name("guard.py")


@dataclass(frozen=True)
class RunAs:
    """The user a child gives root up for, and whether it must still reach past closed folders."""

    uid: int
    gid: int
    search: bool = False


async def start_guarded(
    command: Sequence[str],
    *,
    on_death: signal.Signals = signal.SIGKILL,
    run_as: RunAs | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdout: int | IO[bytes] = asyncio.subprocess.PIPE,
    stderr: int | IO[bytes] = asyncio.subprocess.STDOUT,
    pass_fds: Sequence[int] = (),
) -> asyncio.subprocess.Process:
    """Start a command in its own session; it gets ``on_death`` when this process is gone.

    A terminal's Ctrl-C reaches this process only, so the children end in the order it chooses.
    Call from the main thread: the kernel watches the thread that forks.
    """
    guard = [sys.executable, "-I", "-S", str(GUARD)]
    guard += ["--parent", str(os.getpid()), "--signal", str(int(on_death))]
    if run_as is not None:
        guard += ["--user", f"{run_as.uid}:{run_as.gid}"]
        guard += ["--search"] if run_as.search else []
    return await asyncio.create_subprocess_exec(
        *guard,
        "--",
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=stdout,
        stderr=stderr,
        env=env,
        cwd=cwd,
        pass_fds=pass_fds,
        start_new_session=True,
    )


async def end(
    process: asyncio.subprocess.Process, steps: Sequence[tuple[signal.Signals, float]]
) -> int:
    """Send each signal in turn until the process is gone, then clear its group. Returns its status.

    The last resort is SIGKILL for the whole group, so that grandchildren go too.
    """
    for number, seconds in steps:
        if process.returncode is not None:
            break
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await process.wait()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    return await process.wait()
