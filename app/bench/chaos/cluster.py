"""The deployment: web processes and workers that are replaced when they end, as anywhere."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Self

import psutil
from sqlalchemy.engine import make_url

from app.bench.chaos.member import spawn_member
from app.bench.chaos.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import httpx

    from app.bench.chaos.member import Kind, Member, Spawn

_DSNS = ("STOA_DATABASE_URL", "STOA_DISPATCH_DATABASE_URL", "STOA_MAINTENANCE_DATABASE_URL")
_ENDING_SECONDS = 30.0
_COMPLAINT = 500
"""Characters of a log line that are worth showing."""
_ENDED = '"event": "ended"'


class Cluster:
    """Keeps so many members of each kind running, each with its own wire to Postgres.

    A spare of each kind stands by with its imports done, so that a replacement works at once.

    Args:
        environment: settings of the service; the DSNs name Postgres itself.
        logs: a folder for what the processes say.
    """

    def __init__(
        self, spawn: Spawn, environment: Mapping[str, str], logs: Path, sizes: Mapping[Kind, int]
    ) -> None:
        self._spawn = spawn
        self._environment = environment
        self._logs = logs
        self._sizes = sizes
        self._members: list[Member] = []
        self._watchers: set[asyncio.Task[None]] = set()
        self._spares: dict[Kind, asyncio.Task[Member]] = {}
        self._started: set[int] = set()
        self._numbers = count()
        self._ending = False
        self.origins: list[str] = []
        """Where the web processes answer that are running now."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._ending = True
        for task in (*self._watchers, *self._spares.values()):
            task.cancel()
        await asyncio.gather(*self._watchers, *self._spares.values(), return_exceptions=True)
        for member in self._members:
            member.send(signal.SIGKILL)
            await member.ended()

    async def start(self) -> None:
        """Start every member."""
        for kind, size in self._sizes.items():
            self._spares[kind] = asyncio.create_task(self._prepare(kind))
            for _ in range(size):
                await self._replace(kind)

    def members(self, kind: Kind) -> list[Member]:
        """Those that are running now."""
        return [each for each in self._members if each.kind == kind and each.is_alive]

    async def ready(self, http: httpx.AsyncClient) -> None:
        """Return once all of them do their work."""
        await asyncio.gather(*(member.ready(http) for member in self._members))

    async def stop(self) -> list[Member]:
        """Ask all to end as an orchestrator does; returns those that did not do so in order."""
        self._ending = True
        for spare in await asyncio.gather(*self._spares.values()):
            spare.send(signal.SIGKILL)
            await spare.ended()
        self._spares.clear()
        for member in self._members:
            member.send(signal.SIGTERM)
        async with asyncio.timeout(_ENDING_SECONDS):
            await asyncio.gather(*(each.ended() for each in self._members))
        return [each for each in self._members if not each.has_ended_in_order]

    def left_over(self) -> list[str]:
        """Processes that belong to one of this cluster's and are alive."""
        left = []
        for process in psutil.process_iter():
            with suppress(OSError, psutil.Error):
                is_ours = os.getsid(process.pid) in self._started
                if is_ours and process.status() != psutil.STATUS_ZOMBIE:
                    left.append(f"{process.pid} {process.name()}")
        return left

    def complaints(self) -> list[str]:
        """What processes logged as faults of their own: what goes wrong around them is none.

        That it ends and why, each says in the end; whether it may is for others to judge.
        """
        return [
            f"{log.name}: {line[:_COMPLAINT]}"
            for log in sorted(self._logs.glob("w*.log"))
            for line in log.read_text(errors="replace").splitlines()
            if _is_complaint(line)
        ]

    async def _replace(self, kind: Kind) -> None:
        """Let the spare go, and have a new one prepared."""
        member = await self._spares[kind]
        self._spares[kind] = asyncio.create_task(self._prepare(kind))
        self._members.append(member)
        if kind == "web":
            self.origins.append(member.origin)
        member.let_go()
        watcher = asyncio.create_task(self._watch(member))
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)

    async def _watch(self, member: Member) -> None:
        await member.ended()
        if self._ending:
            return
        self._members.remove(member)
        if member.kind == "web":
            self.origins.remove(member.origin)
        await self._replace(member.kind)

    async def _prepare(self, kind: Kind) -> Member:
        url = make_url(self._environment[_DSNS[0]])
        host, port = url.host or "127.0.0.1", url.port or 5432
        wire = Wire(lambda: (host, port))
        await wire.open()
        dsns = {
            name: make_url(self._environment[name])
            .set(host="127.0.0.1", port=wire.port)
            .render_as_string(hide_password=False)
            for name in _DSNS
        }
        log = self._logs / f"{kind}-{next(self._numbers)}.log"
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("STOA_")}
        environment = {**inherited, **self._environment, **dsns}
        member = await spawn_member(self._spawn, kind, environment, wire, log)
        self._started.add(member.process.pid)
        return member


def _is_complaint(line: str) -> bool:
    is_error = '"level": "error"' in line and _ENDED not in line
    return is_error or line.startswith("Traceback")
