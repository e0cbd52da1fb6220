"""``stoa dev`` with its programs forked as well, from a copy of what it was itself at first."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from app.dev.supervisor import program
from tests.support.forked.orders import Orders
from tests.support.forked.piped import Piped, piped

_PR_SET_PDEATHSIG: Final = 1
Order = dict[str, Any]


def with_forked_programs(ours: Order, serve: Callable[[socket.socket], Order]) -> Order:
    """Have the programs of this process forked by a copy of it, which ends with it.

    Returns in this process with its own order, and in each of its programs with that one's.
    """
    parent = os.getpid()
    orders, control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        orders.close()
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            sys.exit(1)
        with control:
            return serve(control)
    control.close()
    setattr(program, "start_guarded", _starting(Orders(orders)))  # noqa: B010 - in another's place
    return ours


def _starting(orders: Orders) -> Callable[..., Any]:
    async def start(
        command: Sequence[str], *, env: Mapping[str, str], pass_fds: Sequence[int]
    ) -> Piped:
        arguments = command[len(program.STOA) :]
        return await piped(
            lambda output: orders.start(arguments, env, Path.cwd(), output, pass_fds, faulty=False)
        )

    return start
