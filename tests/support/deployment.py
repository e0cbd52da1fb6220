"""A deployment as in production: processes of the real command, on a database of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from pathlib import Path
from uuid import uuid4

import asyncpg
import httpx
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from tests.support.faulty.fault import Fault
from tests.support.held_ports import held_port
from tests.support.issuer import AUDIENCE, TestIssuer
from tests.support.model_server import ScriptedModelServer
from tests.support.processes import (
    StoaProcess,
    faulty_worker_process,
    spare_worker_process,
    web_process,
    worker_process,
)
from tests.support.tenancy import TestDatabase
from tests.support.tls import NO_AUTHORITY
from tests.support.vaults import keys_of

GRAPHS = Path(__file__).parent / "graphs" / "langgraph.json"
QUICK_LEASE = {
    "STOA_LEASE_SECONDS": "2",
    "STOA_HEARTBEAT_SECONDS": "0.5",
    "STOA_REAP_SECONDS": "0.2",
}
"""For workers that are to outlive their lease: on a busy machine one may lose it before."""
STEADY_LEASE = {**QUICK_LEASE, "STOA_LEASE_SECONDS": "60"}
"""For all others: no pause of the machine's is as long. That of one that is dead has run out when
:meth:`Deployment.lease_over` says so."""


@dataclass
class Deployment:
    """The parts of a deployment, and a way to start more of them. All end with it."""

    database: TestDatabase
    issuer: TestIssuer
    model: ScriptedModelServer
    logs: Path
    _model_port: int
    _stack: AsyncExitStack = field(repr=False)
    _numbers: count[int] = field(default_factory=count)

    async def start_web(
        self, *, port: int | None = None, fault: Fault | None = None, **settings: str
    ) -> StoaProcess:
        """Start a web process."""
        environment = {**self._environment(), **settings}
        running = web_process(environment, self._log("web"), port, fault)
        return await self._stack.enter_async_context(running)

    async def start_worker(self, **settings: str) -> StoaProcess:
        """Start a worker."""
        environment = {**self._environment(), **settings}
        log = self._log("worker")
        return await self._stack.enter_async_context(worker_process(environment, log))

    async def prepare_worker(self, **settings: str) -> StoaProcess:
        """Start a spare worker, which begins at once when it is let go."""
        environment = {**self._environment(), **settings}
        running = spare_worker_process(environment, self._log("spare-worker"))
        return await self._stack.enter_async_context(running)

    async def prepare_faulty_worker(self, fault: Fault, **settings: str) -> StoaProcess:
        """Start a spare worker that fails at a point once it was let go."""
        environment = {**self._environment(), **settings}
        running = spare_worker_process(environment, self._log("spare-worker"), fault)
        return await self._stack.enter_async_context(running)

    async def start_faulty_worker(self, fault: Fault, **settings: str) -> StoaProcess:
        """Start a worker that fails at a point; it may do so before it is ready."""
        environment = {**self._environment(), **settings}
        running = faulty_worker_process(environment, self._log("faulty-worker"), fault)
        return await self._stack.enter_async_context(running)

    async def start_shipped_web(self, **settings: str) -> StoaProcess:
        """Start a web process from nothing, as people do."""
        environment = {**self._environment(), **settings}
        running = web_process(environment, self._log("web"), shipped=True)
        return await self._stack.enter_async_context(running)

    async def start_shipped_worker(self, **settings: str) -> StoaProcess:
        """Start a worker from nothing, as people do."""
        environment = {**self._environment(), **settings}
        running = worker_process(environment, self._log("worker"), shipped=True)
        return await self._stack.enter_async_context(running)

    def http(self, person: str, web: StoaProcess) -> httpx.AsyncClient:
        """A plain HTTP client for a person."""
        client = httpx.AsyncClient(
            base_url=web.url,
            headers=self.issuer.headers(person),
            timeout=30,
            trust_env=False,
            verify=NO_AUTHORITY,
        )
        self._stack.push_async_callback(client.aclose)
        return client

    def sdk(self, person: str, web: StoaProcess) -> LangGraphClient:
        """LangGraph's own client for a person."""
        client = get_client(url=web.url, headers=self.issuer.headers(person), api_key=None)
        self._stack.push_async_callback(client.aclose)
        return client

    @property
    def stalls(self) -> int:
        """How many model calls have stalled so far: the next one has the number after it."""
        return sum(each.stalled_at is not None for each in self.model.requests)

    async def lease_over(self, worker: StoaProcess) -> datetime:
        """Let the lease of a worker that is dead, or stands still, be over, as if time had passed.

        Returns since when it is.
        """
        async with self.superuser() as connection:
            over: datetime = await connection.fetchval(
                "UPDATE workers SET lease_until = clock_timestamp() WHERE pid = $1"
                " RETURNING lease_until",
                worker.process.pid,
            )
            assert over is not None, "it has no lease"
            return over

    async def restart_model(self) -> None:
        """Start the model server again where it was, after a test stopped it."""
        self.model = await self._stack.enter_async_context(_model(self._model_port))

    @asynccontextmanager
    async def superuser(self) -> AsyncIterator[asyncpg.Connection]:
        """A connection that sees everything in the database."""
        connection = await self.database.connect("owner")
        try:
            yield connection
        finally:
            await connection.close()

    def all_logs(self) -> str:
        """What all processes have logged so far."""
        return "\n".join(path.read_text(errors="replace") for path in self.logs.iterdir())

    @property
    def tombstones(self) -> Path:
        """Where the erasures of the deployment leave what outlasts its database."""
        return self.logs.with_name(f"{self.logs.name}-tombstones")

    def _log(self, name: str) -> Path:
        return self.logs / f"{name}-{next(self._numbers)}.log"

    def _environment(self) -> dict[str, str]:
        return {
            "STOA_DATABASE_URL": self.database.dsn("service"),
            "STOA_DISPATCH_DATABASE_URL": self.database.dsn("dispatch"),
            "STOA_MAINTENANCE_DATABASE_URL": self.database.dsn("maintenance"),
            "STOA_IDENTITY_ISSUER": self.issuer.url,
            "STOA_IDENTITY_AUDIENCE": AUDIENCE,
            "STOA_IDENTITY_JWKS_URL": self.issuer.jwks_url,
            "STOA_OLLAMA_URL": self.model.url,
            "STOA_OLLAMA_CAPACITY": "64",
            "STOA_MODEL": "smollm2",
            "STOA_GRAPHS": str(GRAPHS),
            "STOA_SIGNING_KEYS": keys_of("signing"),
            "STOA_TOMBSTONE_FOLDER": str(self.tombstones),
        }


@asynccontextmanager
async def deployed(template: TestDatabase, logs: Path) -> AsyncIterator[Deployment]:
    """Everything but the processes: a migrated database, an identity provider, a model server."""
    database = TestDatabase(template.server, f"stoa_deployed_{uuid4().hex[:12]}")
    await database.server.copy_database(template.name, database.name)
    try:
        async with AsyncExitStack() as stack:
            issuer = await stack.enter_async_context(TestIssuer())
            port = stack.enter_context(held_port())
            model = await stack.enter_async_context(_model(port))
            yield Deployment(database, issuer, model, logs, port, stack)
    finally:
        await database.server.drop_database(database.name)


def _model(port: int) -> ScriptedModelServer:
    return ScriptedModelServer(slots=8, port=port)
