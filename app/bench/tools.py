"""``stoa bench tools``: a tool's call through the service's parts against one by a bare client.

The same small server, by stdio and by HTTP, each once for a bare ``fastmcp`` client and once for
the pool. Ours makes the whole way of a call: its arguments are checked, the credential is looked
up, a connection leased, the call put on record before and its result after. Rounds alternate, so
that whatever else the machine does hits both alike.
"""

from __future__ import annotations

import asyncio
import base64
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import httpcore
from fastmcp import Client
from fastmcp.client.transports import StdioTransport as BareStdio
from fastmcp.client.transports import StreamableHttpTransport as BareHttp
from langchain_core.messages import ToolCall
from rich.console import Console
from rich.table import Table

from app.bench.database import bench_database, settings_of
from app.bench.load import percentile
from app.bench.service import free_port
from app.bench.tool_server import TOOL
from app.connections.credentials import Credentials
from app.connections.known import KnownConnections
from app.connections.oauth.client import PublicAddress
from app.connections.oauth.oauth import OAuth
from app.connections.standing import UserConnections
from app.runs.runs import RunRequest, create_run
from app.runs.threads import create_thread
from app.tools.calls import AgentTool, run_call
from app.tools.entries import versioned
from app.tools.ledger import Ledger
from app.tools.mcp.calling import ServerCalls
from app.tools.mcp.tools import bind_tools
from app.tools.pool.pool import ToolPool
from app.tools.servers import HttpTransport, McpServer, StdioTransport
from app.tools.site import CallSite, site_of_call
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.signals import Announcer
from tenancy.database.tenant import TenantDatabase
from tenancy.identity.directory import UserDirectory
from tenancy.principal import Identity
from tenancy.vault import Vault, WrappingKeys

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    from app.bench.database import BenchDatabase
    from tenancy.principal import ClaimedRun

    CallOnce = Callable[[], Awaitable[None]]

GOAL_MS = 5
"""At most so much is added to a call's median."""
_MODULE = "app.bench.tool_server"
_LEASE_SECONDS = 3600
_TEXT = "words " * 20
_WARM_UP = 20
_START_SECONDS = 30
_ROOT = Path(__file__).parents[2]


@dataclass(slots=True)
class Way:
    """One way to a server: how long calls took, in seconds."""

    name: str
    bare: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)

    def added_ms(self, percent: int) -> float:
        """What ours adds at this percentile."""
        return (percentile(self.ours, percent) - percentile(self.bare, percent)) * 1000


async def bench_tools(owner_dsn: str, folder: Path, *, calls: int, rounds: int) -> list[Way]:
    """Measure, print a table and return what was measured.

    Args:
        owner_dsn: a superuser's DSN.
        folder: where children may have their folders.
        calls: calls per side, way and round, one after the other.
        rounds: how often the sides alternate.
    """
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(_http_server())
        arguments = ("-m", _MODULE, "stdio")
        servers: dict[str, StdioTransport | HttpTransport] = {
            "stdio": StdioTransport(sys.executable, arguments, {"PYTHONPATH": str(_ROOT)}),
            "HTTP": HttpTransport(url),
        }
        bares: dict[str, BareStdio | BareHttp] = {
            "stdio": BareStdio(sys.executable, list(arguments), cwd=str(_ROOT)),
            "HTTP": BareHttp(url),
        }
        database = await stack.enter_async_context(bench_database(owner_dsn))
        desk = await stack.enter_async_context(_desk(database, folder))
        ways = [Way(name) for name in servers]
        sides: dict[str, tuple[CallOnce, CallOnce]] = {}
        for name, transport in servers.items():
            bare = await stack.enter_async_context(_bare(bares[name]))
            ours = await desk.caller(versioned(McpServer(name.lower(), transport)))
            sides[name] = (bare, ours)
            for call in sides[name]:
                await _time(call, _WARM_UP)
        for _ in range(rounds):
            for way in ways:
                bare, ours = sides[way.name]
                way.bare += await _time(bare, calls)
                way.ours += await _time(ours, calls)
    Console().print(_table(ways, await settings_of(owner_dsn)))
    return ways


@dataclass(frozen=True, slots=True)
class _Desk:
    """A person's run, and all that its calls go through."""

    run: ClaimedRun
    pool: ToolPool
    credentials: Credentials
    ledger: Ledger

    async def caller(self, server: McpServer) -> CallOnce:
        """What makes one call after the other, each a new one."""
        credential = await self.credentials.current(self.run, server)
        async with self.pool.lease(self.run.user_id, server, credential) as connection:
            listed = connection.tools
        calls = ServerCalls(self.run, self.pool, self.credentials, self.ledger)
        tools = {tool.name: tool for tool in bind_tools(server, listed, calls)}
        return lambda: _call(tools, f"{server.name}__{TOOL}")


async def _call(tools: dict[str, AgentTool], name: str) -> None:
    call_id = str(uuid4())
    site_of_call.set(CallSite("message", call_id))
    call = ToolCall(name=name, args={"text": _TEXT}, id=call_id)
    message = await run_call(call, tools, None, asyncio.Semaphore(8))
    if message.text != _TEXT:
        raise RuntimeError(f"a call failed: {message.text}")


@asynccontextmanager
async def _desk(database: BenchDatabase, folder: Path) -> AsyncIterator[_Desk]:
    async with AsyncExitStack() as stack:
        tenants = TenantDatabase(database.service)
        stack.push_async_callback(tenants.close)
        dispatch = DispatchDatabase(database.dispatch)
        stack.push_async_callback(dispatch.close)
        run, thread_id = await _claimed(tenants, dispatch)
        announcer = Announcer(database.service.dsn)
        connections = UserConnections(tenants, {}, announcer, own_allowed=False)
        vault = Vault(tenants, WrappingKeys.parse(f"bench:{base64.b64encode(bytes(32)).decode()}"))
        oauth = OAuth(PublicAddress(None))
        known = KnownConnections()
        credentials = Credentials(connections.rows, vault, oauth, announcer, known)
        stack.push_async_callback(credentials.aclose)
        pool = ToolPool(folder / "mcp", sandbox="none")
        stack.push_async_callback(pool.stop)
        await pool.start()
        yield _Desk(run, pool, credentials, Ledger(tenants, run, thread_id))


async def _claimed(tenants: TenantDatabase, dispatch: DispatchDatabase) -> tuple[ClaimedRun, UUID]:
    """A run that a worker holds."""
    until = datetime.now(UTC) + timedelta(hours=1)
    person = await UserDirectory(tenants).principal(Identity("https://bench", "person", until))
    async with tenants.writing(person) as tx:
        thread_id = (await create_thread(tx)).thread_id
    await create_run(
        tenants,
        person,
        thread_id=thread_id,
        assistant_id=uuid4(),
        graph_id="agent",
        request=RunRequest(),
    )
    worker_id = uuid4()
    await dispatch.register_worker(worker_id, "bench", 1, _LEASE_SECONDS)
    (run,) = await dispatch.claim_runs(worker_id, 1, {"running": 1}, "bench")
    return run, thread_id


@asynccontextmanager
async def _bare(transport: BareStdio | BareHttp) -> AsyncIterator[CallOnce]:
    async with Client(transport) as client:

        async def call() -> None:
            await client.call_tool_mcp(TOOL, {"text": _TEXT})

        yield call


@asynccontextmanager
async def _http_server() -> AsyncIterator[str]:
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", _MODULE, "http", str(port)), cwd=_ROOT
    )
    try:
        async with asyncio.timeout(_START_SECONDS):
            await _until_answered(port)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _until_answered(port: int) -> None:
    async with httpcore.AsyncConnectionPool(retries=8) as pool:
        await pool.request("GET", f"http://127.0.0.1:{port}/")


async def _time(call: CallOnce, times: int) -> list[float]:
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        await call()
        taken.append(time.perf_counter() - begun)
    return taken


def _table(ways: list[Way], about: str) -> Table:
    table = Table(title="One call of a tool, ms", caption=about)
    for heading in ("", "bare client", "Stoa", "added", "goal"):
        table.add_column(heading, justify="right" if heading else "left")
    for way in ways:
        for percent in (50, 99):
            sides = [percentile(each, percent) * 1000 for each in (way.bare, way.ours)]
            goal = f"≤ {GOAL_MS}" if percent == 50 else ""  # noqa: PLR2004 - the median
            told = [f"{each:.1f}" for each in (*sides, way.added_ms(percent))]
            table.add_row(f"{way.name}, p{percent}", *told, goal)
    return table
