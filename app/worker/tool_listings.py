"""What servers offer to one run: what they have listed before, or say when they are asked.

Servers are bound by what they listed before: nobody connects to them until a tool is called. One
whose tools are not known yet is asked now, for a short time: what it costs then is its own tools,
not the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import structlog

from app.connections.errors import CredentialMissing
from app.connections.leasing import leased
from app.connections.rows import FIRST_VERSION
from app.connections.standing import state_of
from app.logging import facts_of
from app.tools.pool.failures import Reason, ToolServerUnavailable
from app.tools.readable import Readable
from app.tools.servers import Credential, ListedTool, McpServer, Scope, Unavailable
from tenancy.database.engine import DatabaseUnavailable

if TYPE_CHECKING:
    from app.connections.standing import UserConnections, UserServer
    from app.tools.pool.leased import ToolConnection
    from app.worker.tool_services import ToolServices
    from tenancy.principal import ClaimedRun, Owner, UserId

log = structlog.get_logger(__name__)

LISTING_SECONDS = 10.0
"""How long a run waits for servers that nobody has asked for their tools yet."""
FAILING_SECONDS = 2.0
"""The same for those that did not answer before: nobody waits long for them in every turn. Their
connection goes on being opened, for the next turn."""

_UNMET = ("needs_key", "needs_authorization")
_OURS = (Reason.CLOSED, Reason.FULL, Reason.RESTING)
"""Why there is no connection, without the server having been asked."""

READABLE_SECONDS = 2.0
"""How long a run waits for what such a server lets be read, once its tools are known: nobody misses
that in this run, and it is noted with the next call all the same."""

Listed = tuple[ListedTool, ...] | Unavailable


class Listings:
    """Knows what servers offer, and asks those of which that is not known."""

    def __init__(self, tools: ToolServices) -> None:
        self._tools = tools

    async def of(
        self, run: ClaimedRun, servers: Sequence[UserServer], looked_at: Collection[str] = ()
    ) -> dict[str, Listed]:
        """Each server's tools, or why there are none, by its name.

        The servers that are to be ``looked_at`` are asked for their tools, unless a connection is
        open: their person has decided on calls of tools that may be others by now.

        Raises:
            DatabaseUnavailable: Postgres is away.
        """
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
        found: dict[str, Listed] = {}
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

    async def _ask(self, run: ClaimedRun, each: UserServer) -> Listed:
        """Connect to a server for its tools, and remember them."""
        server = each.server
        if each.state in _UNMET:
            return Unavailable(server.name, each.state, is_news=each.version > FIRST_VERSION)
        leasing = leased(self._tools.pool, self._tools.credentials, run, server)
        seconds = FAILING_SECONDS if each.state == "unavailable" else LISTING_SECONDS
        try:
            async with asyncio.timeout(seconds) as limit, leasing as (connection, credential):
                limit.reschedule(None)
                tools = connection.tools
                await connection.until_whole(READABLE_SECONDS)
        except CredentialMissing as error:
            return Unavailable(server.name, error.reason)
        except TimeoutError:
            await self._note_failure(run, server, each.version, Reason.TIMEOUT)
            return Unavailable(server.name, Reason.TIMEOUT)
        except ToolServerUnavailable as error:
            if error.reason not in _OURS:
                await self._note_failure(run, server, each.version, error.reason)
            return error.unavailable
        version = each.version if server.scope is Scope.SHARED else credential.version
        await _store(self._tools.connections, run, server, version, tools, connection.readable)
        if (reason := connection.lost) is not None:
            # Noted before that it works, maybe; it does not any more.
            await self._note_failure(run, server, version, reason)
        return tools

    async def _note_failure(
        self, run: ClaimedRun, server: McpServer, version: int, reason: str
    ) -> None:
        with suppress(DatabaseUnavailable):
            await self._tools.connections.store_listing(
                run, server, version, None, state_of(reason), reason
            )


class Relisting:
    """Leases connections, and remembers for later runs what a server has come to offer."""

    def __init__(
        self,
        tools: ToolServices,
        run: ClaimedRun,
        servers: Sequence[UserServer],
        found: Mapping[str, Listed],
    ) -> None:
        self._tools = tools
        self._run = run
        self._versions = {each.server.name: each.version for each in servers}
        self._noted = {
            each.server.name: found[each.server.name] if each.listing is None else each.listing
            for each in servers
        }
        self._readable = {
            each.server.name: Readable(each.resources, each.prompts) for each in servers
        }

    @asynccontextmanager
    async def lease(
        self, owner: UserId | None, server: McpServer, credential: Credential
    ) -> AsyncIterator[ToolConnection]:
        """A connection for one call."""
        async with self._tools.pool.lease(owner, server, credential) as connection:
            yield connection
            listed = connection.tools
            readable = connection.readable.over(self._readable[server.name])
        if listed != self._noted[server.name] or readable != self._readable[server.name]:
            self._noted[server.name] = listed
            self._readable[server.name] = readable
            # Everybody's connection is of no version of anybody's.
            is_shared = server.scope is Scope.SHARED
            version = self._versions[server.name] if is_shared else credential.version
            await _store(self._tools.connections, self._run, server, version, listed, readable)


async def _store(
    connections: UserConnections,
    owner: Owner,
    server: McpServer,
    version: int,
    tools: tuple[ListedTool, ...],
    readable: Readable,
) -> None:
    try:
        await connections.store_listing(
            owner, server, version, tools, "available", readable=readable
        )
    except DatabaseUnavailable as error:
        log.warning("a listing was not stored", **facts_of(error))
