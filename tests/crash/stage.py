"""Where things die: a deployment, people who are told things, and the proof of what held."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from random import Random
from uuid import uuid4

import httpx
import psutil
from sqlalchemy.ext.asyncio import AsyncEngine

from app.bench.chaos.client import Person
from app.bench.chaos.promises import Promises, Violation
from app.bench.chaos.proof import Proof
from app.bench.chaos.rows import open_runs
from app.bench.chaos.witness import install_witness
from tenancy.database.engine import create_engine
from tests.support.deployment import Deployment
from tests.support.faulty.fault import Fault
from tests.support.processes import PATIENCE, StoaProcess


@dataclass
class Stage:
    """A deployment whose every promise is written down."""

    deployment: Deployment
    owner: AsyncEngine
    promises: Promises
    _clients: httpx.AsyncClient
    origins: list[str] = field(default_factory=list)
    _webs: list[StoaProcess] = field(default_factory=list)
    _people: dict[str, Person] = field(default_factory=dict)
    _headers: dict[str, Mapping[str, str]] = field(default_factory=dict)
    _known: Counter[Violation] = field(default_factory=Counter)
    _numbers: count[int] = field(default_factory=count)

    def person(self) -> Person:
        """Somebody new."""
        name = f"person-{next(self._numbers)}"
        self._headers[name] = self.deployment.issuer.headers(name)
        person = Person(
            name, self._headers[name], self.origins, self._clients, self.promises, Random(name)
        )
        self._people[name] = person
        return person

    async def open_web(self, fault: Fault | None = None) -> StoaProcess:
        """Start a web process that everybody may ask."""
        web = await self.deployment.start_web(fault=fault)
        self.origins.append(web.url)
        self._webs.append(web)
        return web

    async def kill_webs(self) -> None:
        """Kill every web process that people ask."""
        self.origins.clear()
        await asyncio.gather(*(web.kill() for web in self._webs))
        self._webs.clear()

    def headers_of(self, person: Person) -> Mapping[str, str]:
        """What says that a request is a person's."""
        return self._headers[person.name]

    async def assert_whole(self) -> None:
        """Everything that was promised came true, and nothing is open or left."""
        assert await open_runs(self.owner) == 0
        proof = Proof(self.owner, self._clients, self.origins, self._people, self._headers)
        found = Counter(await proof.settled(self.promises))
        new = found - self._known  # or one failure would fail every later test
        self._known |= found
        assert not new, "\n".join(map(str, new)) + "\n\n" + self.deployment.all_logs()

    async def assert_nothing_left(self, *workers: StoaProcess) -> None:
        """Once everything has ended in order: no lease, no connection, no process."""
        ours = [psutil.Process(each.process.pid) for each in (*workers, *self._webs)]
        families = [*ours, *(child for each in ours for child in each.children(recursive=True))]
        for worker in workers:
            assert await worker.terminate() == 0, worker.output
        await asyncio.gather(*(web.terminate() for web in self._webs))
        self._webs.clear()
        self.origins.clear()
        proof = Proof(self.owner, self._clients, self.origins, self._people, self._headers)
        assert await proof.ended() == []
        _, left = await asyncio.to_thread(psutil.wait_procs, families, PATIENCE)
        assert not left


@asynccontextmanager
async def staged(deployment: Deployment) -> AsyncIterator[Stage]:
    """A stage without any process yet."""
    owner = create_engine(deployment.database.settings("owner"))
    try:
        await install_witness(owner)
        async with httpx.AsyncClient(trust_env=False, timeout=30, limits=_NO_LIMITS) as clients:
            yield Stage(deployment, owner, Promises(), clients)
    finally:
        await owner.dispose()


_NO_LIMITS = httpx.Limits(max_connections=None)


def new_thread() -> str:
    """The id of a thread that is made with its first run."""
    return str(uuid4())
