"""What goes wrong: each kind of fault, how often, and how it is done."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path
    from random import Random

    from sqlalchemy.ext.asyncio import AsyncEngine

    from app.bench.chaos.cluster import Cluster
    from app.bench.chaos.member import Kind, Member

_BEYOND_LEASE = 1.5
_WITHIN_LEASE = 0.4


class Postgres(Protocol):
    """A server that can be restarted."""

    async def start(self) -> None:
        """Start it, and wait until it takes connections."""
        ...

    async def stop(self, *, hurry: bool = False) -> None:
        """End it: fast, or, in a hurry, at once and without tidying up."""
        ...


@dataclass
class Faults:
    """Injects faults into a cluster and its Postgres; every choice comes from ``random``."""

    cluster: Cluster
    postgres: Postgres
    owner: AsyncEngine
    lease_seconds: float
    random: Random
    log: Path
    """Where it is written down what went wrong when, beside the logs of the processes."""
    injected: Counter[str] = field(default_factory=Counter)
    _passing: set[asyncio.Task[None]] = field(default_factory=set)

    async def inject(self, kind: str) -> None:
        """Let one thing go wrong. What heals by itself does so later."""
        target = await _KINDS[kind].inject(self)
        self.injected[kind] += 1
        with self.log.open("a") as log:
            log.write(f"{datetime.now(UTC).isoformat()} {kind} {target or ''}\n")

    async def healed(self) -> None:
        """Return once everything that was held is let go again."""
        await asyncio.gather(*self._passing)

    def deck(self, size: int) -> list[str]:
        """So many kinds in random order, each as often as it should be."""
        whole = [name for name, kind in _KINDS.items() for _ in range(kind.weight)]
        cards: list[str] = []
        while len(cards) < size:
            cards += self.random.sample(whole, len(whole))
        return cards[:size]

    async def send(self, kind: Kind, number: signal.Signals) -> Member | None:
        """Send a signal to one of a kind."""
        member = self._choose(kind)
        if member is not None:
            member.send(number)
        return member

    async def freeze(self, kind: Kind, leases: float) -> Member | None:
        """Let one of a kind stand still for about so many leases."""
        member = await self.send(kind, signal.SIGSTOP)
        if member is not None:
            self._hold(member, leases, lambda: member.send(signal.SIGCONT))
        return member

    async def silence(self, leases: float) -> Member | None:
        """Let nothing of one process's get through to Postgres for about so many leases."""
        member = self._choose("web", "worker")
        if member is not None:
            member.wire.silence()
            self._hold(member, leases, member.wire.restore)
        return member

    async def drop(self) -> Member | None:
        """Break one process's connections to Postgres."""
        member = self._choose("web", "worker")
        if member is not None:
            member.wire.drop()
        return member

    async def restart(self, *, hurry: bool) -> None:
        """End Postgres, and start it again."""
        await self.postgres.stop(hurry=hurry)
        await asyncio.sleep(self.random.uniform(0, 0.3))
        await self.postgres.start()

    async def end_backends(self) -> None:
        """Have Postgres end a few sessions of anybody's."""
        query = sa.text(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE usename LIKE 'stoa%' AND pid <> pg_backend_pid()"
            " ORDER BY md5(pid::text || :seed) LIMIT :most"
        )
        values = {"seed": str(self.random.random()), "most": self.random.randint(1, 8)}
        while True:
            try:
                async with self.owner.connect() as connection:
                    await connection.execute(query, values)
                return
            except (DBAPIError, OSError):  # after a restart the pool holds dead connections
                await self.owner.dispose()

    def _choose(self, *kinds: Kind) -> Member | None:
        """One that is not held already, or two faults at once would be less than one."""
        members = [each for kind in kinds for each in self.cluster.members(kind)]
        free = [each for each in members if not each.is_held]
        return self.random.choice(free) if free else None

    def _hold(self, member: Member, leases: float, let_go: Callable[[], None]) -> None:
        async def hold() -> None:
            await asyncio.sleep(self.lease_seconds * leases * self.random.uniform(0.8, 1.2))
            let_go()
            member.is_held = False

        member.is_held = True
        task = asyncio.create_task(hold())
        self._passing.add(task)
        task.add_done_callback(self._passing.discard)


@dataclass(frozen=True, slots=True)
class _KindOfFault:
    weight: int
    """Of a hundred faults, how many are of this kind. A new process costs seconds of CPU."""
    inject: Callable[[Faults], Awaitable[Member | None]]


_KINDS: Mapping[str, _KindOfFault] = {
    "worker killed": _KindOfFault(6, lambda f: f.send("worker", signal.SIGKILL)),
    "worker drained": _KindOfFault(4, lambda f: f.send("worker", signal.SIGTERM)),
    "worker frozen past its lease": _KindOfFault(4, lambda f: f.freeze("worker", _BEYOND_LEASE)),
    "worker frozen for a moment": _KindOfFault(16, lambda f: f.freeze("worker", _WITHIN_LEASE)),
    "web process killed": _KindOfFault(4, lambda f: f.send("web", signal.SIGKILL)),
    "web process ended": _KindOfFault(2, lambda f: f.send("web", signal.SIGTERM)),
    "web process frozen": _KindOfFault(10, lambda f: f.freeze("web", _WITHIN_LEASE)),
    "connections broken": _KindOfFault(20, lambda f: f.drop()),
    "connections silent for a moment": _KindOfFault(9, lambda f: f.silence(_WITHIN_LEASE)),
    "connections silent past the lease": _KindOfFault(2, lambda f: f.silence(_BEYOND_LEASE)),
    "backends terminated": _KindOfFault(16, lambda f: f.end_backends()),
    "Postgres restarted fast": _KindOfFault(3, lambda f: f.restart(hurry=False)),
    "Postgres restarted immediately": _KindOfFault(4, lambda f: f.restart(hurry=True)),
}
