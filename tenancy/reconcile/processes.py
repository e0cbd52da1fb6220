"""Whether a process of this machine is still the one that somebody wrote down."""

from __future__ import annotations

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


def _start_of(process: psutil.Process) -> datetime:
    if process.status() == psutil.STATUS_ZOMBIE:  # it has ended, and only its parent minds
        raise psutil.NoSuchProcess(process.pid)
    return datetime.fromtimestamp(process.create_time(), UTC)
