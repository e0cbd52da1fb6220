"""``stoa`` that says on request what its event loop holds: for benches that count it.

``python -m app.bench.observed worker`` is ``stoa worker``. It listens at a socket in the folder
that ``BENCH_OBSERVED`` names, and answers whoever connects with a line of JSON.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import runpy
import socket
import threading
from pathlib import Path

import uvloop.loop

FOLDER = "BENCH_OBSERVED"
_TIMERS = (asyncio.TimerHandle, uvloop.loop.TimerHandle)  # type: ignore[attr-defined]


def socket_of(folder: Path, pid: int) -> Path:
    """Where a process answers."""
    return folder / f"{pid}.socket"


def held() -> dict[str, int]:
    """Tasks that are not done, and timers that nobody has cancelled."""
    gc.collect()
    kinds = [(type(each), each) for each in gc.get_objects()]
    return {
        "tasks": sum(issubclass(kind, asyncio.Task) and not each.done() for kind, each in kinds),
        "timers": sum(issubclass(kind, _TIMERS) and not each.cancelled() for kind, each in kinds),
    }


def _answer(listening: socket.socket) -> None:
    while True:
        connection, _ = listening.accept()
        with connection:
            connection.sendall(json.dumps(held()).encode() + b"\n")


if __name__ == "__main__":
    asked = socket.socket(socket.AF_UNIX)
    asked.bind(str(socket_of(Path(os.environ[FOLDER]), os.getpid())))
    asked.listen()
    threading.Thread(target=_answer, args=(asked,), name="observed", daemon=True).start()
    # By its name: benches are started by the command line, and do not know it.
    runpy.run_module("app.cli", run_name="__main__", alter_sys=True)
