"""The process with the imports: forks one of itself for each order, and reports how that ends.

An order comes through the socket whose number is the argument, with open files: where to report
to, the output, and what else the new process is to have, under the numbers that it knows them by.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from pathlib import Path
from typing import Any, Final

from app import faults
from app.cli.main import main
from tests.support.faulty.fault import Fault
from tests.support.forked.programs import with_forked_programs

NUMBER_BYTES: Final = 4
_LONGEST_ORDER: Final = 200_000
_MOST_FILES: Final = 16
_OUT_OF_THE_WAY: Final = 500
"""Files wait above this number until they are given their own."""
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_NAME: Final = 15
_LOADED_WHEN_NEEDED: Final = (
    "app.api.process",
    "app.worker.process",
    "app.admin",
    "app.dev.supervisor",
    "app.dev.gateway",
    "app.logging",
    "app.tools.pool.calling",
    "app.tools.pool.opening",
    "app.tools.pool.pacing",
    "app.tools.stdio.child",
    "anyio._backends._asyncio",
    "uvloop",
    "tenancy.migrate",
)


def serve(control: socket.socket) -> dict[str, Any]:
    """Fork for each order. Returns in each new process, with its order.

    Ends when the other end of the socket is closed.
    """
    parent = os.getpid()
    reports: dict[int, tuple[int, socket.socket]] = {}
    while True:
        readable, _, _ = select.select([control.fileno(), *reports], [], [])
        for ended in set(readable) - {control.fileno()}:
            pid, report = reports.pop(ended)
            os.close(ended)
            _, status = os.waitpid(pid, 0)
            with report:
                _send(report, os.waitstatus_to_exitcode(status))
        if control.fileno() not in readable:
            continue
        message, files, _, _ = socket.recv_fds(control, _LONGEST_ORDER, _MOST_FILES)
        if not message:
            sys.exit()
        order: dict[str, Any] = json.loads(message)
        report = socket.socket(fileno=files.pop(0))
        pid = os.fork()
        if pid == 0:
            # Whoever waits for the end must not wait for what this process has open.
            for each in (control, report, *(open_report for _, open_report in reports.values())):
                each.close()
            for each_pid in reports:
                os.close(each_pid)
            _become(order, files, parent)
            return order
        for file in files:
            os.close(file)
        _send(report, pid)
        reports[os.pidfd_open(pid)] = (pid, report)


def _become(order: dict[str, Any], files: list[int], parent: int) -> None:
    os.setsid()
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_NAME, order["arguments"][0].encode(), 0, 0, 0)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(1)
    waiting = [fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, _OUT_OF_THE_WAY) for file in files]
    for file in files:
        os.close(file)
    for file, number in zip(waiting, order["numbers"], strict=True):
        os.dup2(file, number)
        os.close(file)
    os.dup2(1, 2)
    os.chdir(order["folder"])
    sys.argv = ["stoa", *order["arguments"]]


def _send(report: socket.socket, number: int) -> None:
    try:
        report.sendall(number.to_bytes(NUMBER_BYTES, "big", signed=True))
    except BrokenPipeError:
        return  # Nobody waits any more.


if __name__ == "__main__":
    started_with = dict(os.environ)
    for name in _LOADED_WHEN_NEEDED:
        importlib.import_module(name)
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "a thread would be lost by forking"
    set_by_imports = {
        name: value for name, value in os.environ.items() if started_with.get(name) != value
    }
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with socket.socket(fileno=int(sys.argv[1])) as orders:
        ours = serve(orders)
    if ours["arguments"][0] in ("dev", "bench"):
        ours = with_forked_programs(ours, serve)
    os.environ.clear()
    os.environ.update({**ours["environment"], **set_by_imports})
    if ours["faulty"]:
        faults.arm(Fault.from_environment().reach)
    main()
