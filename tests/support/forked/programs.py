"""Commands that start programs of Stoa's have them forked, from a copy of what they were at first.

Such are ``stoa dev``, and the benches that start a service.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Final

from app.bench import service
from app.dev.supervisor import program
from tests.support.forked.orders import Orders
from tests.support.forked.piped import Piped, piped
from tests.support.forked.running import Running

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
    for module, name, make in _STARTERS:
        setattr(module, name, make(Orders(orders), getattr(module, name)))
    return ours


def _starting(orders: Orders, _: object) -> Callable[..., Any]:
    """In place of the start of a program of ``stoa dev``."""

    async def start(
        command: Sequence[str], *, env: Mapping[str, str], pass_fds: Sequence[int]
    ) -> Piped:
        arguments = command[len(program.STOA) :]
        return await piped(
            lambda output: orders.start(arguments, env, Path.cwd(), output, pass_fds, faulty=False)
        )

    return start


def _running(
    orders: Orders, shipped: Callable[..., AbstractAsyncContextManager[Any]]
) -> Callable[..., AbstractAsyncContextManager[Any]]:
    """In place of a process of a bench's service; one that is watched is started as ever."""

    @asynccontextmanager
    async def running(
        command: Sequence[str], environment: Mapping[str, str]
    ) -> AsyncIterator[Running]:
        if command[0] != "app.cli":
            async with shipped(command, environment) as process:
                yield process
            return
        own = {**os.environ, **environment}
        with tempfile.TemporaryFile() as log:
            forked = await orders.start(command[1:], own, Path.cwd(), log, (), faulty=False)
            try:
                yield forked
            finally:
                if forked.returncode is None:
                    forked.terminate()
                await forked.wait()

    return running


_STARTERS: Final = ((program, "start_guarded", _starting), (service, "_process", _running))
