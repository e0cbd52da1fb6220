"""Looks at tool servers that people want to use: web processes hold no connections to them.

Which are wanted is found through the cross-user door, by ids; each is done for its user through the
tenant door and with their credential. A wish whose worker died is taken up by another.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from app.connections.errors import CredentialMissing
from app.connections.known import connection_key
from app.connections.leasing import leased
from app.connections.rows import Standing
from app.connections.standing import NOT_ALLOWED, standing_of, state_of
from app.logging import facts_of
from app.tools.pool.failures import Reason, ToolServerUnavailable
from app.tools.servers import Scope
from tenancy.errors import StoaError

if TYPE_CHECKING:
    from app.connections.credentials import Credentials
    from app.connections.leasing import Pool
    from app.connections.rows import ConnectionRow
    from app.connections.standing import UserConnections, UserServer
    from app.tools.pool.leased import ToolConnection
    from app.tools.servers import McpServer
    from tenancy.database.crossing import DispatchDatabase, WantedCheck
    from tenancy.database.signals import Announcer


log = structlog.get_logger(__name__)

LOOK_SECONDS = 5.0
"""How often wishes are looked for that were not heard of, or whose worker died."""
MOST_AT_ONCE = 8
MOST_OF_EACH = 3
"""Of one person: somebody's slow servers are not to hold up everybody's."""
LEASE_SECONDS = 75.0
CHECK_SECONDS = 30.0
"""Of one attempt, and the next: two of them end before somebody else may take it up."""
READABLE_SECONDS = 5.0
"""How long a server that has listed its tools may take to list what it lets be read."""


@dataclass(frozen=True, slots=True)
class Found:
    """How a server stood, under which version of the connection."""

    version: int
    standing: Standing
    connection: ToolConnection | None = None
    """By which it was found to work."""

    @property
    def lost(self) -> Reason | None:
        """Why it works no more, where that is so."""
        return None if self.connection is None else self.connection.lost


class ConnectionChecker:
    """Checks wanted connections until stopped, as far as it has room. Any number may do so."""

    def __init__(
        self,
        dispatch: DispatchDatabase,
        connections: UserConnections,
        credentials: Credentials,
        pool: Pool,
        announcer: Announcer,
    ) -> None:
        self._dispatch = dispatch
        self._connections = connections
        self._credentials = credentials
        self._pool = pool
        self._announcer = announcer
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._checks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Begin to look."""
        self._task = asyncio.create_task(self._look_for_ever(), name="connection checker")

    async def stop(self) -> None:
        """Stop at once; what was begun is taken up by others."""
        tasks = [*self._checks, *([self._task] if self._task is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def hear(self, _payload: str | None) -> None:
        """Somebody wants to know how a server stands, or may have wanted to: look."""
        self._wanted.set()

    async def _look_for_ever(self) -> None:
        while True:
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._wanted.wait()
            except TimeoutError:
                pass
            self._wanted.clear()
            try:
                await self._take_on()
            except StoaError as error:
                log.warning("looking for wanted connections failed", **facts_of(error))
            except Exception:
                log.exception("looking for wanted connections broke")

    async def _take_on(self) -> None:
        """Take on as many as there is room for; each that ends looks for the next."""
        room = MOST_AT_ONCE - len(self._checks)
        if room <= 0:
            return
        for wanted in await self._dispatch.claim_checks(room, MOST_OF_EACH, LEASE_SECONDS):
            task = asyncio.create_task(self._in_peace(wanted), name="connection check")
            self._checks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._checks.discard(task)
        self._wanted.set()

    async def _in_peace(self, wanted: WantedCheck) -> None:
        try:
            await self._check(wanted)
        except StoaError as error:
            log.warning("checking a connection failed", **facts_of(error))
        except Exception:
            log.exception("checking a connection broke")

    async def _check(self, wanted: WantedCheck) -> None:
        row = await self._connections.rows.by_id(wanted, wanted.connection_id)
        if row is None:
            return  # removed meanwhile
        known = self._connections.of_row(row)
        if known is None:  # offered no more: the wish is over, and holds up no others
            seen = Found(row.version, Standing("unknown"))
        else:
            seen = await self._look_at(wanted, known)
        was_there = await self._finish(wanted, row, seen)
        if known is not None and seen.lost is not None:  # by now: the newest word is the last
            await self._finish(wanted, row, _missing(known.server, seen.version, seen.lost))
        if was_there:
            self._announcer.connection_changed(connection_key(wanted.user_id, wanted.connection_id))

    async def _finish(self, wanted: WantedCheck, row: ConnectionRow, seen: Found) -> bool:
        return await self._connections.rows.finish_check(wanted, row, seen.version, seen.standing)

    async def _look_at(self, wanted: WantedCheck, known: UserServer) -> Found:
        """Connect, list, and say how that went; once more where it was closed on our side.

        That is what becomes of a connection that was revoked a moment ago, as a new key does.
        """
        if known.reason == NOT_ALLOWED:  # any more: the wish is older than the setting
            return _missing(known.server, known.version, NOT_ALLOWED)
        found = await self._attempt(wanted, known)
        if found.standing.reason == Reason.CLOSED:
            return await self._attempt(wanted, known)
        return found

    async def _attempt(self, wanted: WantedCheck, known: UserServer) -> Found:
        server, version = known.server, known.version
        leasing = leased(self._pool, self._credentials, wanted, server)
        try:
            async with asyncio.timeout(CHECK_SECONDS) as limit, leasing as (connection, credential):
                limit.reschedule(None)
                version = version if server.scope is Scope.SHARED else credential.version
                await connection.until_whole(READABLE_SECONDS)
                tools, readable = connection.tools, connection.readable
                works = standing_of(server, tools, "available", None, readable)
                return Found(version, works, connection)
        except (CredentialMissing, ToolServerUnavailable) as error:
            return _missing(server, version, error.reason)
        except TimeoutError:
            return _missing(server, version, Reason.TIMEOUT)
        except Exception:  # whatever it was, it is not to be tried for ever
            log.exception("a tool server could not be looked at")
            return _missing(server, version, Reason.PROTOCOL)


def _missing(server: McpServer, version: int, reason: str) -> Found:
    return Found(version, standing_of(server, None, state_of(reason), str(reason)))
