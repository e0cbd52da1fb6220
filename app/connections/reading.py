"""Reads what a person's servers let be read, in their name: for what they point at in a message.

Only what the server has listed for them is asked for, by the person's own connection. To read
changes nothing, so nobody approves it, and no ledger knows of it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.connections.errors import ConnectionNotFound
from app.connections.leasing import LettingGo, leased
from app.tools.mcp.access import CredentialUnusable
from app.tools.mcp.readings import text_of_prompt, text_of_resource
from app.tools.pool.failures import NotReadable, Reason, ToolServerUnavailable
from app.tools.redaction import Redactor
from tenancy.errors import StoaError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from app.connections.leasing import LetsGo
    from app.connections.standing import UserConnections, UserServer
    from app.tools.mcp.access import Credentials
    from app.tools.pool.leased import ToolConnection
    from app.tools.servers import McpServer
    from tenancy.principal import ClaimedRun

    Read = Callable[[ToolConnection, Redactor], Awaitable[str]]

MOST_BYTES = 64 * 1024
"""Of one text, in UTF-8."""
READING_SECONDS = 10.0
"""How long one may take, connecting included."""
MOST_READS = 100
"""Of one attempt of a run: as many as a message may point at."""
AT_ONCE = 4
"""The same, at a time."""
_MOST_ATTEMPTS = 10_000
"""Whose reads are remembered."""
_UNMET = ("needs_key", "needs_authorization")


class ReadingFailed(StoaError):
    """It cannot be read now. ``reason`` is a stable code."""

    code = "reading_failed"
    message = "A tool server's resource or prompt cannot be read."

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason
        """``not_found`` (no such server for this person, or it does not list that),
        ``needs_arguments``, ``failed`` (the server answered with an error), ``too_many`` (this run
        has read as much as one may), ``disconnected``, or why the server cannot be reached: what
        :class:`app.tools.servers.Unavailable` says."""


@dataclass(slots=True)
class _Attempt:
    """What one attempt of a run has read, and how much of it at a time."""

    reads: int = 0
    room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))


class ConnectionReader:
    """Reads by a person's own connections, as their credentials let them."""

    def __init__(
        self,
        connections: UserConnections,
        credentials: Credentials,
        pool: LetsGo,
        *,
        seconds: float = READING_SECONDS,
    ) -> None:
        self._connections = connections
        self._credentials = LettingGo(credentials, pool)
        self._pool = pool
        self._seconds = seconds
        self._attempts: OrderedDict[ClaimedRun, _Attempt] = OrderedDict()

    async def resource(self, run: ClaimedRun, server: str, uri: str) -> str:
        """The text of a resource, without the person's credential, at most ``MOST_BYTES`` of it.

        Raises:
            ReadingFailed: there is none to be had.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        found = await self._find(run, server)
        if not any(each.uri == uri for each in found.resources):
            raise ReadingFailed("not_found")

        async def read(connection: ToolConnection, redactor: Redactor) -> str:
            result = await connection.read_resource(uri, seconds=self._seconds)
            return text_of_resource(result, redactor, MOST_BYTES)

        return await self._bounded(run, found.server, read)

    async def prompt(self, run: ClaimedRun, server: str, name: str) -> str:
        """What a prompt says that needs no arguments; as for resources.

        Raises:
            ReadingFailed: there is none to be had.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        found = await self._find(run, server)
        listed = next((each for each in found.prompts if each.name == name), None)
        if listed is None:
            raise ReadingFailed("not_found")
        if listed.needs_arguments:
            raise ReadingFailed("needs_arguments")

        async def read(connection: ToolConnection, redactor: Redactor) -> str:
            result = await connection.get_prompt(name, seconds=self._seconds)
            return text_of_prompt(result, redactor, MOST_BYTES)

        return await self._bounded(run, found.server, read)

    async def _find(self, run: ClaimedRun, name: str) -> UserServer:
        """The server as it stands with the run's user, if it may be used."""
        try:
            found = await self._connections.find(run, name)
        except ConnectionNotFound:
            raise ReadingFailed("not_found") from None
        if found.server.is_own and not self._connections.own_allowed:
            raise ReadingFailed("not_found")
        if not found.enabled:
            raise ReadingFailed("disconnected")
        if found.state in _UNMET:
            raise ReadingFailed(found.state)
        return found

    async def _bounded(self, run: ClaimedRun, server: McpServer, read: Read) -> str:
        attempt = self._attempt(run)
        if attempt.reads >= MOST_READS:
            raise ReadingFailed("too_many")
        attempt.reads += 1
        try:
            async with attempt.room, asyncio.timeout(self._seconds):
                return await self._read(run, server, read)
        except TimeoutError:
            raise ReadingFailed(Reason.TIMEOUT) from None
        except (CredentialUnusable, ToolServerUnavailable) as error:
            raise ReadingFailed(str(error.reason)) from None
        except NotReadable:
            raise ReadingFailed("failed") from None

    async def _read(self, run: ClaimedRun, server: McpServer, read: Read) -> str:
        """Read by a connection, and once more by another where that one ended meanwhile."""
        async with leased(self._pool, self._credentials, run, server) as (connection, credential):
            try:
                return await read(connection, Redactor(server, credential))
            except ToolServerUnavailable as error:
                lost = error
        if lost.reason == Reason.NEEDS_AUTHORIZATION:
            await self._credentials.refused(run, server, credential)
        async with leased(self._pool, self._credentials, run, server) as (connection, credential):
            return await read(connection, Redactor(server, credential))

    def _attempt(self, run: ClaimedRun) -> _Attempt:
        attempt = self._attempts.setdefault(run, _Attempt())
        self._attempts.move_to_end(run)
        while len(self._attempts) > _MOST_ATTEMPTS:
            self._attempts.popitem(last=False)
        return attempt
