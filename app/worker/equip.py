"""What one run's agent is equipped with: its user's servers, the tools that come with the service.

Servers are bound by what they listed before: nobody connects to them until a tool is called. One
whose tools are not known yet is asked now, for a short time: what it costs then is its own tools,
not the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import structlog

from app.agent.equipment import Equipment
from app.connections.errors import CredentialMissing
from app.connections.leasing import leased
from app.connections.rows import FIRST_VERSION
from app.connections.standing import state_of
from app.logging import facts_of
from app.memory.run import memory_for_run
from app.runs.permissions import ThreadPermissions
from app.tools.approval.word import PersonsWord
from app.tools.builtin import builtin_tools
from app.tools.builtin.visits import Visits
from app.tools.calls import AgentTool
from app.tools.ledger import Ledger
from app.tools.mcp.calling import ServerCalls
from app.tools.mcp.tools import RecordedCalls, bind_tools
from app.tools.pool.failures import Reason, ToolServerUnavailable
from app.tools.servers import Credential, ListedTool, McpServer, Scope, Unavailable
from app.worker.tool_room import within_room
from tenancy.database.engine import DatabaseUnavailable

if TYPE_CHECKING:
    from uuid import UUID

    from app.agent.equipment import Recall
    from app.connections.credentials import Credentials
    from app.connections.standing import UserConnections, UserServer
    from app.tools.pool.leased import ToolConnection
    from app.tools.pool.pool import ToolPool
    from app.worker.tool_services import ToolServices
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import ClaimedRun, Owner, UserId
    from tenancy.scheduler.limits import Limits

log = structlog.get_logger(__name__)

CALLS_AT_ONCE = 8
"""Of one run's tools."""
LISTING_SECONDS = 10.0
"""How long a run waits for servers that nobody has asked for their tools yet."""
FAILING_SECONDS = 2.0
"""The same for those that did not answer before: nobody waits long for them in every turn. Their
connection goes on being opened, for the next turn."""

_UNMET = ("needs_key", "needs_authorization")
_OVER = (*_UNMET, "disconnected")
_OURS = (Reason.CLOSED, Reason.FULL, Reason.RESTING)
"""Why there is no connection, without the server having been asked."""


class Outfitter:
    """Puts the equipment of runs together."""

    def __init__(self, database: TenantDatabase, tools: ToolServices, limits: Limits) -> None:
        self._database = database
        self._tools = tools
        self._limits = limits

    async def equip(
        self, run: ClaimedRun, thread_id: UUID, looked_at: Collection[str] = ()
    ) -> Equipment:
        """What this run's agent is given. Whose it is comes from the run's row alone.

        The servers that are to be ``looked_at`` are asked for their tools, unless a connection is
        open: their person has decided on calls of tools that may be others by now.

        Raises:
            DatabaseUnavailable: Postgres is away.
        """
        ledger = Ledger(self._database, run, thread_id)
        tools, recall = self._own_tools(run, ledger)
        slots, sees_images = asyncio.Semaphore(CALLS_AT_ONCE), self._tools.sees_images
        permissions = ThreadPermissions(self._database, run, thread_id)
        if not self._tools.has_servers:
            return Equipment(tools, (), recall, sees_images, slots, permissions=permissions)
        servers = await self._tools.connections.of(run)
        listings = await self._listings(run, servers, looked_at)
        calls = ServerCalls(
            run,
            _Relisting(self._tools, run, servers, listings),
            _LettingGo(self._tools.credentials, self._tools.pool),
            ledger,
            self._tools.late,
        )
        found = [(each, listings[each.server.name]) for each in servers]
        missing = [tools_of for _, tools_of in found if isinstance(tools_of, Unavailable)]
        offered = (
            (each.server.name, partial(bind_tools, each.server, [listed], calls, word))
            for each, tools_of in found
            if not isinstance(tools_of, Unavailable)
            for word in (self._word(run, each),)
            for listed in tools_of
        )
        # Schemas of any servers are work for the processor: others' runs go on meanwhile.
        tools, crowded_out = await asyncio.to_thread(
            within_room, tools, offered, self._tools.tool_tokens
        )
        missing += crowded_out
        return Equipment(
            tools, missing, recall, sees_images, slots, RecordedCalls(calls), permissions
        )

    def _own_tools(
        self, run: ClaimedRun, ledger: Ledger
    ) -> tuple[dict[str, AgentTool], Recall | None]:
        """The tools that come with the service."""
        names = self._tools.builtin
        visits = Visits(self._tools.fetch_asks, ledger)
        own = builtin_tools(names, visitor=run.user_id, visits=visits)
        tools = {tool.name: tool for tool in own}
        if "memory" not in names:
            return tools, None
        memory = memory_for_run(self._database, run, self._limits, self._tools.embedder)
        return {**tools, **memory.tools}, memory.recall

    def _word(self, run: ClaimedRun, each: UserServer) -> PersonsWord:
        """What the run's user has said of a server, which is read anew where it has changed."""
        return PersonsWord(each.word, partial(self._tools.connections.word, run, each.server))

    async def _listings(
        self, run: ClaimedRun, servers: Sequence[UserServer], looked_at: Collection[str]
    ) -> dict[str, tuple[ListedTool, ...] | Unavailable]:
        """Each server's tools, or why there are none, by its name."""
        known = {each.server.name: self._newest(run, each) for each in servers}
        unlisted = [
            each
            for each in servers
            if each.listing is None
            or (each.server.name in looked_at and not known[each.server.name])
        ]
        # All come to their end, also where one raises.
        asking = (self._ask(run, each) for each in unlisted)
        asked = await asyncio.gather(*asking, return_exceptions=True)
        found: dict[str, tuple[ListedTool, ...] | Unavailable] = {}
        for each, answer in zip(unlisted, asked, strict=True):
            if isinstance(answer, BaseException):
                raise answer
            if each.listing is None or not isinstance(answer, Unavailable):
                found[each.server.name] = answer
        for each in servers:
            if each.listing is not None and each.server.name not in found:
                found[each.server.name] = known[each.server.name] or each.listing
        return found

    def _newest(self, run: ClaimedRun, each: UserServer) -> tuple[ListedTool, ...] | None:
        """What a server has said of its tools since they were noted, on a connection open here."""
        is_shared = each.server.scope is Scope.SHARED
        owner, version = (None, Credential().version) if is_shared else (run.user_id, each.version)
        return self._tools.pool.listed(owner, each.server, version)

    async def _ask(self, run: ClaimedRun, each: UserServer) -> tuple[ListedTool, ...] | Unavailable:
        """Connect to a server for its tools, and remember them."""
        server = each.server
        if each.state in _UNMET:
            return Unavailable(server.name, each.state, is_news=each.version > FIRST_VERSION)
        leasing = leased(self._tools.pool, self._tools.credentials, run, server)
        seconds = FAILING_SECONDS if each.state == "unavailable" else LISTING_SECONDS
        try:
            async with asyncio.timeout(seconds), leasing as (connection, credential):
                tools = connection.tools
        except CredentialMissing as error:
            return Unavailable(server.name, error.reason)
        except TimeoutError:
            await self._note_failure(run, each, Reason.TIMEOUT)
            return Unavailable(server.name, Reason.TIMEOUT)
        except ToolServerUnavailable as error:
            if error.reason not in _OURS:
                await self._note_failure(run, each, error.reason)
            return error.unavailable
        version = each.version if server.scope is Scope.SHARED else credential.version
        await _store(self._tools.connections, run, server, version, tools)
        return tools

    async def _note_failure(self, run: ClaimedRun, each: UserServer, reason: str) -> None:
        with suppress(DatabaseUnavailable):
            await self._tools.connections.store_listing(
                run, each.server, each.version, None, state_of(reason), reason
            )


class _LettingGo:
    """Credentials, and where there is none any more, no connection either.

    Who revoked it has said so, but that is heard once: it may have been missed, or have come while
    a connection was being opened.
    """

    def __init__(self, credentials: Credentials, pool: ToolPool) -> None:
        self._credentials = credentials
        self._pool = pool

    async def current(self, owner: Owner, server: McpServer) -> Credential:
        """What the owner's connection proves itself with now."""
        try:
            return await self._credentials.current(owner, server)
        except CredentialMissing as error:
            if error.reason in _OVER:
                self._pool.let_go(owner.user_id, server.name)
            raise

    async def refused(self, owner: Owner, server: McpServer, credential: Credential) -> None:
        """Hear that a server does not take a credential."""
        await self._credentials.refused(owner, server, credential)


class _Relisting:
    """Leases connections, and remembers for later runs what a server has come to offer."""

    def __init__(
        self,
        tools: ToolServices,
        run: ClaimedRun,
        servers: Sequence[UserServer],
        found: Mapping[str, tuple[ListedTool, ...] | Unavailable],
    ) -> None:
        self._tools = tools
        self._run = run
        self._versions = {each.server.name: each.version for each in servers}
        self._noted = {
            each.server.name: found[each.server.name] if each.listing is None else each.listing
            for each in servers
        }

    @asynccontextmanager
    async def lease(
        self, owner: UserId | None, server: McpServer, credential: Credential
    ) -> AsyncIterator[ToolConnection]:
        """A connection for one call."""
        async with self._tools.pool.lease(owner, server, credential) as connection:
            yield connection
            listed = connection.tools
        if listed != self._noted[server.name]:
            self._noted[server.name] = listed
            # Everybody's connection is of no version of anybody's.
            is_shared = server.scope is Scope.SHARED
            version = self._versions[server.name] if is_shared else credential.version
            await _store(self._tools.connections, self._run, server, version, listed)


async def _store(
    connections: UserConnections,
    owner: Owner,
    server: McpServer,
    version: int,
    tools: tuple[ListedTool, ...],
) -> None:
    try:
        await connections.store_listing(owner, server, version, tools, "available")
    except DatabaseUnavailable as error:
        log.warning("a listing was not stored", **facts_of(error))
