"""Runs a command so that it cannot outlive the process that started it.

    python -I -S guard.py --parent PID --signal N [--user UID:GID] [--search] -- command…

Run as a script by :mod:`app.dev.child` and therefore free of imports beyond the standard library.
On Linux the kernel does the work (``PR_SET_PDEATHSIG``) and the guard becomes the command.
Elsewhere the guard stays, holds its end of a pipe (its standard input), and ends the command
when the pipe closes, which happens however the starter dies.

``--user`` gives up root for that user; ``--search`` then keeps the one capability that lets it
reach a folder below others that only root may enter.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import select
import signal
import subprocess
import sys
from typing import NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_KEEPCAPS = 8
PR_SET_SECUREBITS = 28
SECBIT_NO_SETUID_FIXUP = 4
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2
CAPABILITY_VERSION_3 = 0x20080522
# Reading folders is all that is wanted; containers often have only the larger right.
CAP_DAC_READ_SEARCH = 2
CAP_DAC_OVERRIDE = 1
POLL_SECONDS = 0.2


def main() -> NoReturn:
    """Give up root where asked, tie the command to its starter, and run it."""
    arguments = _arguments()
    if arguments.user:
        uid, gid = (int(part) for part in arguments.user.split(":"))
        _become(uid, gid, search=arguments.search)
    if arguments.watch or not sys.platform.startswith("linux"):
        sys.exit(_run_and_watch(arguments.command, arguments.signal))
    # After the change of user, which would clear it.
    _libc().prctl(PR_SET_PDEATHSIG, arguments.signal, 0, 0, 0)
    if os.getppid() != arguments.parent:
        sys.exit(1)  # The starter died before the kernel knew of our wish.
    os.execvp(arguments.command[0], arguments.command)  # noqa: S606 - to run it is our purpose


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--signal", type=int, required=True)
    parser.add_argument("--user")
    parser.add_argument("--search", action="store_true")
    parser.add_argument("--watch", action="store_true")
    parser.add_argument("command", nargs="+")
    return parser.parse_args()


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


class _CapHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapData(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def _become(uid: int, gid: int, *, search: bool) -> None:
    keep = search and sys.platform.startswith("linux")
    if keep:
        _libc().prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
        # access(2), with which PostgreSQL looks for its own files, would leave the capability out.
        _libc().prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0)
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)
    if keep:
        _keep_search()


def _keep_search() -> None:
    libc = _libc()
    header, data = _CapHeader(CAPABILITY_VERSION_3, 0), (_CapData * 2)()
    libc.capget(ctypes.byref(header), ctypes.byref(data))
    for capability in (CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE):
        bit = 1 << capability
        if data[0].permitted & bit:
            kept = (_CapData * 2)()
            kept[0].effective = kept[0].permitted = kept[0].inheritable = bit
            if libc.capset(ctypes.byref(header), ctypes.byref(kept)) != 0:
                sys.exit("the capabilities of root could not be given up")
            libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0)
            return
    sys.exit("root has no right to pass closed folders here")


def _run_and_watch(command: list[str], ending: int) -> int:
    # Descriptors that were passed to us are meant for the command.
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, close_fds=False)  # noqa: S603

    def forward(number: int, _frame: object) -> None:
        child.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, forward)
    starter_gone = False
    while (status := child.poll()) is None:
        if starter_gone:
            child.wait()
            continue
        readable, _, _ = select.select([sys.stdin], [], [], POLL_SECONDS)
        if readable and not os.read(sys.stdin.fileno(), 1):
            starter_gone = True
            child.send_signal(ending)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    main()
