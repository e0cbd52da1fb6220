"""The whole service for a test: web on a real socket, a worker, a fresh migrated database."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import asyncpg
import httpx
import uvicorn
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from app.api.application import create_app
from app.api.process import WebServer, listen_on, server_config
from app.api.services import Services, open_services
from app.settings import Settings
from app.worker.process import run_worker
from tests.support.issuer import AUDIENCE, TestIssuer
from tests.support.model_server import ScriptedModelServer
from tests.support.postgres import PostgresServer
from tests.support.tls import NO_AUTHORITY
from tests.support.vaults import keys_of

_PATIENCE = 60.0
_LOOK_SECONDS = 0.05
_GOING_ON = """
SELECT count(DISTINCT thread_id) FROM runs
WHERE state IN ('pending', 'running') AND due_at <= now()
"""


@dataclass
class Web:
    """One web process's worth of service, in the test's own process."""

    url: str
    services: Services
    server: WebServer
    task: asyncio.Task[None]

    async def stop(self) -> None:
        """End it as SIGTERM would."""
        self.server.should_exit = True
        await self.task


@dataclass
class RunningService:
    """A service with its database, and clients for as many people as a test needs."""

    settings: Settings
    issuer: TestIssuer
    model: ScriptedModelServer
    postgres: PostgresServer
    database: str
    web: Web
    _stack: AsyncExitStack = field(repr=False)

    @property
    def url(self) -> str:
        """Where the first web process answers."""
        return self.web.url

    def client(
        self, subject: str | None, *, url: str | None = None, **claims: Any
    ) -> httpx.AsyncClient:
        """A plain HTTP client for a person, or for nobody. Closed with the service."""
        headers = self.issuer.headers(subject, **claims) if subject else {}
        client = httpx.AsyncClient(
            base_url=url or self.url,
            headers=headers,
            timeout=_PATIENCE,
            trust_env=False,
            verify=NO_AUTHORITY,
        )
        self._stack.push_async_callback(client.aclose)
        return client

    def sdk(self, subject: str, *, url: str | None = None) -> LangGraphClient:
        """LangGraph's own client for a person. Closed with the service."""
        client = get_client(
            url=url or self.url,
            headers=self.issuer.headers(subject),
            api_key=None,
            timeout=(_PATIENCE, 300, 300, _PATIENCE),
        )
        self._stack.push_async_callback(client.aclose)
        return client

    async def model_is_back(self) -> None:
        """Return once a model server that failed has been found to work again.

        For tests that share the service: until then everybody's runs fail as well.
        """
        operator = self.client("operator of pools", groups=["stoa-admins"])
        async with asyncio.timeout(_PATIENCE):
            while (await operator.get("/admin/pools")).json()["pools"][0]["state"] != "open":  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_SECONDS)

    async def asks_no_model(self) -> None:
        """Return once no run goes on, but those whose thread the model keeps waiting."""
        connection = await asyncpg.connect(self.postgres.dsn("owner", self.database))
        try:
            async with asyncio.timeout(_PATIENCE):
                while (  # noqa: ASYNC110
                    await connection.fetchval(_GOING_ON) > await self.model.count_stalled()
                ):
                    await asyncio.sleep(_LOOK_SECONDS)
        finally:
            await connection.close()

    async def start_web(self) -> Web:
        """Start one more web process's worth of service on the same database."""
        return await self._stack.enter_async_context(running_web(self.settings))


class _QuietServer(WebServer):
    """Leaves the signals to pytest."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def running_web(settings: Settings) -> AsyncIterator[Web]:
    """Serve the real application on a real socket."""
    async with open_services(settings) as services:
        config: uvicorn.Config = server_config(create_app(services))
        with listen_on("127.0.0.1", 0) as listening:
            port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            server = _QuietServer(config, services.streams, port.set_result)
            task = asyncio.create_task(server.serve(sockets=[listening]))
            web = Web(f"http://127.0.0.1:{await port}", services, server, task)
            try:
                yield web
            finally:
                await web.stop()


@asynccontextmanager
async def running_worker(settings: Settings) -> AsyncIterator[asyncio.Event]:
    """Run a worker in this process; the event is set when it has ended by itself."""
    ready, ended = asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(run_worker(settings, ready.set))
    waiting = asyncio.create_task(ready.wait())
    try:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            await task
        task.add_done_callback(lambda _: ended.set())
        yield ended
    finally:
        waiting.cancel()
        task.cancel()
        await asyncio.gather(task, waiting, return_exceptions=True)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)


@asynccontextmanager
async def migrated_database(postgres: PostgresServer) -> AsyncIterator[str]:
    """A database of its own, as the real migrations made it."""
    name = f"stoa_{uuid4().hex[:12]}"
    await postgres.copy_database(await postgres.template(), name)
    try:
        yield name
    finally:
        await postgres.drop_database(name)


@asynccontextmanager
async def running_service(
    postgres: PostgresServer, *, worker: bool = True, **settings: Any
) -> AsyncIterator[RunningService]:
    """Start everything against a fresh database; ``settings`` replace the tests' own."""
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(migrated_database(postgres))
        issuer = await stack.enter_async_context(TestIssuer())
        model = await stack.enter_async_context(ScriptedModelServer(slots=8))
        tombstones = stack.enter_context(TemporaryDirectory())
        chosen = Settings(
            **{
                "database_url": postgres.dsn("service", database),
                "dispatch_database_url": postgres.dsn("dispatch", database),
                "maintenance_database_url": postgres.dsn("maintenance", database),
                "identity_issuer": issuer.url,
                "identity_audience": AUDIENCE,
                "identity_jwks_url": issuer.jwks_url,
                **({} if "pool" in settings else {"ollama_url": model.url, "ollama_capacity": 64}),
                "model": "smollm2",
                "signing_keys": keys_of("signing"),
                "tombstone_folder": tombstones,
                **settings,
            }
        )
        web = await stack.enter_async_context(running_web(chosen))
        if worker:
            await stack.enter_async_context(running_worker(chosen))
        clients = await stack.enter_async_context(AsyncExitStack())
        yield RunningService(chosen, issuer, model, postgres, database, web, clients)
