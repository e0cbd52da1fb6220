"""One child process: started limited, watched, and ended together with all that it started."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self

from app.tools.stdio.command import LIMITS
from app.tools.stdio.exits import ExitWatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.tools.stdio.command import Command
    from app.tools.stdio.groups import Groups
    from app.tools.stdio.sandbox import Sandbox

LAUNCHER = Path(__file__).with_name("launch.py")
MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""Longest line that a server may say at once."""

INPUT_CLOSED_SECONDS = 1.0
"""How long a server may take to end once its input is closed."""
TERMINATED_SECONDS = 1.0
"""How long it may take once told to end by SIGTERM; then it, and all it started, is killed."""
KILLED_SECONDS = 2.0
_LOOK_EVERY = 0.005
_ERROR_CHUNK = 64 * 1024


class Child:
    """A running child. Its end is noticed at once, whoever else holds its pipes."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        groups: Groups,
        hear_errors: Callable[[bytes], None] | None = None,
    ) -> None:
        self.process = process
        self._hear_errors = hear_errors
        self._groups = groups
        groups.begun(process.pid)
        self.exited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.error_bytes = 0
        """How much it has written to its standard error: that is dropped."""
        self._watch = ExitWatch(process, self.exited)
        self._errors = asyncio.create_task(self._drop_errors(), name="tool server's stderr")

    @classmethod
    async def start(
        cls,
        command: Command,
        sandbox: Sandbox,
        groups: Groups,
        hear_errors: Callable[[bytes], None] | None = None,
    ) -> Self:
        """Start it, in its own folder and as the leader of its own process group.

        What it writes to its standard error is dropped, unless somebody is there to hear it.

        Raises:
            OSError: no process could be started.
        """
        asked = {
            "parent": os.getpid(),
            "names": list(command.env),
            "limits": LIMITS,
            "argv": sandbox.wrap(command),
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            str(LAUNCHER),
            json.dumps(asked),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=MAX_MESSAGE_BYTES,
            env=dict(command.env),
            cwd=command.folder,
            start_new_session=True,
        )
        return cls(process, groups, hear_errors)

    @property
    def pid(self) -> int:
        """The process's id, and its group's."""
        return self.process.pid

    async def stop(self) -> None:
        """End it: its input is closed, then SIGTERM, then SIGKILL for the whole group.

        However often the task that waits here is cancelled, nothing is left running.
        """
        task = asyncio.create_task(self._stop(), name="end of a tool server")
        cancelled: asyncio.CancelledError | None = None
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as error:
                cancelled = error
        task.result()
        if cancelled is not None:
            raise cancelled

    async def _stop(self) -> None:
        try:
            if self.process.stdin is not None:
                self.process.stdin.close()
            await asyncio.wait({self.exited}, timeout=INPUT_CLOSED_SECONDS)
            if not self.exited.done():
                self._signal(signal.SIGTERM)
                await asyncio.wait({self.exited}, timeout=TERMINATED_SECONDS)
        finally:
            self._signal(signal.SIGKILL)
            await self._reaped()
            self._groups.over(self.pid)
            self._watch.close()
            self._errors.cancel()
            await asyncio.wait({self._errors})
            # What left the group may hold the pipes; our ends are closed whatever it does.
            self.process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001

    async def _reaped(self) -> None:
        """Until asyncio knows of the end, or the end does not come: the kernel has the last word.

        Not ``process.wait()``, which waits for pipes that others may hold.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(KILLED_SECONDS):
                while self.process.returncode is None:  # noqa: ASYNC110 - nothing else tells of it
                    await asyncio.sleep(_LOOK_EVERY)

    def _signal(self, number: int) -> None:
        """Send to the group, which may outlive its leader under its id."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def _drop_errors(self) -> None:
        """Read what it says for people who would run it by hand: it may quote anything."""
        if self.process.stderr is None:
            return
        with contextlib.suppress(OSError, ValueError):
            while said := await self.process.stderr.read(_ERROR_CHUNK):
                self.error_bytes += len(said)
                if self._hear_errors is not None:
                    self._hear_errors(said)
