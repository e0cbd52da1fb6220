"""Tells at once when a process has ended, whoever else holds its pipes open."""

from __future__ import annotations

import asyncio
import os

_LOOK_EVERY = 0.01


class ExitWatch:
    """Settles a future when a process has ended, until it is closed."""

    def __init__(self, process: asyncio.subprocess.Process, exited: asyncio.Future[None]) -> None:
        self._exited = exited
        self._loop = asyncio.get_running_loop()
        self._descriptor: int | None = None
        self._task: asyncio.Task[None] | None = None
        try:
            self._descriptor = os.pidfd_open(process.pid)
        except ProcessLookupError:
            self._settle()
        except (AttributeError, OSError):  # not Linux, or not allowed
            self._task = asyncio.create_task(self._look(process), name="watch of a tool server")
        else:
            self._loop.add_reader(self._descriptor, self._settle)

    def close(self) -> None:
        """Watch no longer."""
        if self._descriptor is not None:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _settle(self) -> None:
        if not self._exited.done():
            self._exited.set_result(None)
        self.close()

    async def _look(self, process: asyncio.subprocess.Process) -> None:
        """Not ``process.wait()``, which waits for the pipes as well."""
        while process.returncode is None:  # noqa: ASYNC110 - nothing else tells of it
            await asyncio.sleep(_LOOK_EVERY)
        self._task = None
        self._settle()
