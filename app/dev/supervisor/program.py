"""One program of Stoa's as a child process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.dev.child import end, start_guarded
from app.dev.errors import DevelopmentError
from app.dev.supervisor.backoff import Backoff
from app.dev.supervisor.health import answers
from app.dev.supervisor.output import ChildOutput

_POLL_SECONDS = 0.03
_STOPPING = ((signal.SIGTERM, 12.0),)
"""Longer than a worker lets running steps finish."""
_HURRY_SECONDS = 1.5
STOA = (sys.executable, "-m", "app.cli")


@dataclass(frozen=True)
class Plan:
    """What to run, and how to know that it does its work.

    It is ready when ``health`` answers; without one, when it says so on its turn's socket.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    takes_turn: bool = False
    health: str | None = None


class Program:
    """A child process: started, let go, watched, stopped."""

    def __init__(self, plan: Plan, output: ChildOutput | None = None) -> None:
        self.name = plan.name
        self._plan = plan
        self._output = output or ChildOutput(plan.name)
        self._process: asyncio.subprocess.Process | None = None
        self._follower: asyncio.Task[None] | None = None
        self._turn: socket.socket | None = None

    @property
    def pid(self) -> int | None:
        """Its process id while there is one."""
        return self._process.pid if self._process is not None else None

    async def spawn(self) -> None:
        """Start the process. One that takes turns waits for :meth:`let_go`."""
        with contextlib.ExitStack() as until_started:
            turn = self._take_turns(until_started) if self._plan.takes_turn else None
            options = [] if turn is None else ["--turn-socket", str(turn)]
            self._process = await start_guarded(
                [*self._plan.command, *options],
                env={**os.environ, **self._plan.environment},
                pass_fds=[] if turn is None else [turn],
            )
        assert self._process.stdout is not None  # noqa: S101 - a pipe, as start_guarded defaults
        self._follower = asyncio.create_task(self._output.follow(self._process.stdout))

    def let_go(self) -> None:
        """Let a process that takes turns begin."""
        if self._turn is not None:
            # If it is gone already, whoever waits for it finds out.
            with contextlib.suppress(OSError):
                self._turn.send(b"!")

    async def finished(self) -> None:
        """Wait until it has done its work and ended.

        Raises:
            DevelopmentError: it failed.
        """
        assert self._process is not None  # noqa: S101 - spawn() comes first
        if await self._process.wait() != 0:
            raise await self._failure()

    async def ready(self) -> None:
        """Wait until it does its work.

        Raises:
            DevelopmentError: it ended before.
        """
        assert self._process is not None  # noqa: S101 - spawn() comes first
        if self._plan.health is None:
            is_ready = await self._said_ready()
        else:
            is_ready = await self._answers(self._plan.health)
        if not is_ready:
            await self._process.wait()
            raise await self._failure()

    async def watch(self) -> None:
        """Start it again whenever it ends."""
        backoff = Backoff()
        while True:
            assert self._process is not None  # noqa: S101 - spawn() comes first
            status = await self._process.wait()
            await self._follow_to_the_end()
            seconds = backoff.died()
            print(  # noqa: T201
                f"{self.name} ended ({describe(status)}); starting it again in {seconds:g} s.",
                file=sys.stderr,
                flush=True,
            )
            await asyncio.sleep(seconds)
            await self.spawn()
            self.let_go()
            backoff.born()

    async def stop(self) -> None:
        """End it, politely first."""
        if self._process is not None:
            await end(self._process, _STOPPING)
            await self._follow_to_the_end()
            self._process = None
        self._close_turn()

    def hurry(self) -> None:
        """Ask again, which ends every program of ours at once; kill it if it does not."""
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            asyncio.get_running_loop().call_later(_HURRY_SECONDS, self._kill)

    def _kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    def _take_turns(self, until_started: contextlib.ExitStack) -> int:
        """Return the descriptor of the child's end; ours stays open for as long as it lives."""
        self._close_turn()
        self._turn, theirs = socket.socketpair()
        self._turn.setblocking(False)
        until_started.callback(theirs.close)
        return theirs.fileno()

    async def _answers(self, url: str) -> bool:
        assert self._process is not None  # noqa: S101 - spawn() comes first
        while self._process.returncode is None:
            if await answers(url):
                return True
            await asyncio.sleep(_POLL_SECONDS)
        return False

    async def _said_ready(self) -> bool:
        if self._turn is None:
            return True
        try:
            return bool(await asyncio.get_running_loop().sock_recv(self._turn, 1))
        except ConnectionError:
            return False  # It ended without having taken its turn.

    async def _failure(self) -> DevelopmentError:
        await self._follow_to_the_end()
        assert self._process is not None  # noqa: S101 - spawn() comes first
        status = self._process.returncode or 0
        return DevelopmentError(
            f"{self.name} could not start ({describe(status)}). The last it said:\n"
            f"{self._output.last_lines}"
        )

    async def _follow_to_the_end(self) -> None:
        if self._follower is not None:
            # A grandchild may hold the pipe open.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._follower, 1)
            self._follower = None

    def _close_turn(self) -> None:
        if self._turn is not None:
            self._turn.close()
            self._turn = None


def describe(status: int) -> str:
    """Say how a process ended."""
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return f"exit status {status}"
