"""A server that outlived whoever started it, and the file that a dead one left."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from pathlib import Path

import psutil

from app.dev.errors import DevelopmentError

# Fast, then immediate: the second loses nothing either, the next start replays the log.
_STEPS = ((signal.SIGINT, 10.0), (signal.SIGQUIT, 5.0))
_CHILDREN_SECONDS = 30.0


async def clear_orphan(data: Path) -> None:
    """End a server that still runs on this folder; forget one that does not.

    The folder's lock is ours, so a server on it belongs to a start that was killed. Proof that a
    process is that server: it is a ``postgres`` whose working folder is the data folder.
    """
    lock = data / "postmaster.pid"
    process = _process_in(lock)
    if process is None:
        return
    if not _serves(process, data):
        # The number was given to another program since; PostgreSQL would refuse to start.
        lock.unlink(missing_ok=True)
        return
    for number, seconds in _STEPS:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)
        if await _gone(process, seconds):
            return
    raise DevelopmentError(
        f"A PostgreSQL (process {process.pid}) from an earlier start still uses {data}"
        " and does not end. End it and start again."
    )


async def children_ended(data: Path) -> bool:
    """Wait for what a killed server left: its children, which notice by and by and end themselves.

    ``False``: some do not.
    """
    for process in psutil.process_iter():
        if _serves(process, data) and not await _gone(process, _CHILDREN_SECONDS):
            return False
    return True


def _process_in(lock: Path) -> psutil.Process | None:
    try:
        return psutil.Process(int(lock.read_text(encoding="utf-8").splitlines()[0]))
    except (OSError, ValueError, IndexError, psutil.NoSuchProcess):
        return None


def _serves(process: psutil.Process, data: Path) -> bool:
    try:
        return process.name().startswith("postgres") and Path(process.cwd()) == data.resolve()
    except (psutil.Error, OSError):
        return False


async def _gone(process: psutil.Process, seconds: float) -> bool:
    deadline = asyncio.get_running_loop().time() + seconds
    while _is_alive(process):
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it went between the two
        return False
