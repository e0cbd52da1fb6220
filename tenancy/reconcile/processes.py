"""Whether a process of this machine is still the one that somebody wrote down."""

from __future__ import annotations

import os
import signal
from datetime import UTC, datetime, timedelta

import psutil

from tenancy.reconcile.facts import Process, ProcessName

_SAME_START = timedelta(seconds=2)
"""The kernel counts from the boot, whose time of day moves a little when clocks are set."""


def process_start() -> datetime:
    """When the process that asks began, as :func:`look_for` will compare it."""
    return datetime.fromtimestamp(psutil.Process().create_time(), UTC)


def look_for(name: ProcessName, here: str) -> Process:
    """What this machine, whose host name is ``here``, says about a process."""
    if name.host is None or (name.host == here and name.pid is None):
        return Process.UNNAMED
    if name.host != here:
        return Process.ELSEWHERE
    try:
        started = _start_of(psutil.Process(name.pid))
    except psutil.NoSuchProcess:
        return Process.GONE
    except psutil.AccessDenied:
        return Process.UNREADABLE
    if name.started_at is None:
        return Process.UNNAMED
    return Process.HERE if abs(started - name.started_at) <= _SAME_START else Process.GONE


def end_group(name: ProcessName, here: str) -> bool:
    """Kill a process and all of its group; False where it is not there any more.

    Nobody else is hit who gets its PID meanwhile.

    Raises:
        PermissionError: it is not ours to end.
    """
    if name.pid is None:
        return False
    try:
        handle = os.pidfd_open(name.pid)
    except ProcessLookupError:
        return False
    try:
        if look_for(name, here) is not Process.HERE:
            return False
        # One that is stopped keeps its PID, and so its group its number.
        signal.pidfd_send_signal(handle, signal.SIGSTOP)
        if os.getpgid(name.pid) == name.pid:
            os.killpg(name.pid, signal.SIGKILL)
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def _start_of(process: psutil.Process) -> datetime:
    if process.status() == psutil.STATUS_ZOMBIE:  # it has ended, and only its parent minds
        raise psutil.NoSuchProcess(process.pid)
    return datetime.fromtimestamp(process.create_time(), UTC)
