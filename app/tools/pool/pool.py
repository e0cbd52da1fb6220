"""All connections of this process to tool servers: who may use which, and when each is closed."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Self

from app.stopping import end_task
from app.tools.pool.admission import PoolLimits, admit
from app.tools.pool.breaker import Breaker, Breakers
from app.tools.pool.connection import Connection
from app.tools.pool.failures import Reason, ToolServerUnavailable
from app.tools.pool.leased import ConnectionKey, ToolConnection
from app.tools.pool.surroundings import Surroundings
from app.tools.pool.telling import Telling
from app.tools.pool.watching import Untold, Unwatched
from app.tools.pool.wishes import Wishes
from app.tools.servers import Credential, ListedTool, McpServer, Scope, StdioTransport
from app.tools.stdio.groups import Groups
from app.tools.stdio.records import ChildRecords
from app.tools.stdio.sandbox import choose_sandbox

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable
    from pathlib import Path
    from typing import Literal

    from app.settings import Settings
    from app.tools.pool.http import OwnClients
    from app.tools.pool.watching import Standings, Watch
    from tenancy.principal import UserId


STOP_SECONDS = 10.0
"""How long connections may take to close when the process ends."""
BARRED_SECONDS = 120.0
"""How long nothing is opened for somebody whose connections were dropped: what was under way for
them when that was asked has come to its end by then."""
_SWEEPS_PER_IDLE_TIME = 8
_LONGEST_SWEEP_SECONDS = 15.0


class ToolPool:
    """Connections by (user, server, configuration, credential). Used on one event loop."""

    def __init__(
        self,
        folders: Path,
        *,
        sandbox: Literal["auto", "bubblewrap", "none"] = "auto",
        has_children: bool = True,
        has_servers: bool = True,
        limits: PoolLimits | None = None,
        own_clients: OwnClients | None = None,
        watch: Watch | None = None,
        standings: Standings | None = None,
    ) -> None:
        """Open nothing yet.

        Args:
            folders: where the folders of children are.
            sandbox: how they are kept apart.
            has_children: whether any server is a child.
            has_servers: whether there are any that everybody has.
            limits: how many connections there may be.
            own_clients: makes the HTTP clients for servers that users added.
            watch: is told what becomes of connections and calls.
            standings: is told of each connection whether it works.
        """
        self._has_children = has_children
        self._has_servers = has_servers
        self._folders = folders
        self._wanted_sandbox = sandbox
        self._limits = limits or PoolLimits()
        self._own_clients = own_clients
        self._watch = watch or Unwatched()
        self._standings = standings or Untold()
        self._telling = Telling()
        self._surroundings: Surroundings | None = None
        self._groups = Groups()
        self._current: dict[ConnectionKey, Connection] = {}
        self._tasks: dict[Connection, asyncio.Task[None]] = {}
        self._breakers = Breakers()
        self._wishes = Wishes()
        self._barred: dict[UserId, float] = {}
        """For whom nothing is opened, and until when."""
        self._freed = asyncio.Event()
        self._sweeper: asyncio.Task[None] | None = None
        self._stopped = False

    @classmethod
    def from_settings(
        cls,
        settings: Settings,
        servers: Iterable[McpServer],
        own_clients: OwnClients | None = None,
        watch: Watch | None = None,
        standings: Standings | None = None,
    ) -> Self:
        """As the operator set it, for the catalogue's servers."""
        offered = tuple(servers)
        limits = PoolLimits(
            settings.mcp_connections, settings.mcp_connections_per_user, settings.mcp_idle_seconds
        )
        return cls(
            settings.mcp_folder,
            sandbox=settings.mcp_sandbox,
            has_children=any(isinstance(each.transport, StdioTransport) for each in offered),
            has_servers=bool(offered),
            limits=limits,
            own_clients=own_clients,
            watch=watch,
            standings=standings,
        )

    async def start(self) -> None:
        """Choose how children are kept apart, and begin to close what is idle.

        The protocol's libraries take a second to import: before anybody waits for them.

        Raises:
            SettingsError: the sandbox that is insisted on does not work.
        """
        sandbox = await choose_sandbox(self._wanted_sandbox if self._has_children else "none")
        if self._has_servers:
            await asyncio.to_thread(import_module, "app.tools.pool.opening")
        if self._has_children:
            records = ChildRecords(self._folders)
            is_alone = sandbox.program is None
            self._groups = await Groups.guarded(records) if is_alone else Groups(None, records)
        self._surroundings = Surroundings(self._folders, sandbox, self._groups, self._own_clients)
        self._sweeper = asyncio.create_task(self._sweep(), name="sweep of idle tool servers")

    async def stop(self) -> None:
        """Close every connection, within a bounded time; calls under way end."""
        self._stopped = True
        self._tell()
        if self._sweeper is not None:
            await end_task(self._sweeper)
        for connection in self._tasks:
            connection.close()
        tasks = set(self._tasks.values())
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=STOP_SECONDS)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=STOP_SECONDS)
        await self._groups.close()

    @asynccontextmanager
    async def lease(
        self, owner: UserId | None, server: McpServer, credential: Credential
    ) -> AsyncIterator[ToolConnection]:
        """A connection that is open, and is not closed for others' sake while the block lasts.

        Raises:
            ToolServerUnavailable: there is none to be had.
        """
        connection = await self._acquire(owner, server, credential)
        try:
            yield connection
        finally:
            self._give_back(connection)

    def forget(self, owner: UserId, server: str) -> None:
        """Close a user's connections to a server: its credential is gone or another.

        Calls under way on them end, and nobody who waits opens one with what they had.
        """
        self._drop_wishes(lambda key: (key.owner, key.server) == (owner, server))
        for connection in list(self._tasks):
            if connection.owner == owner and connection.key.server == server:
                connection.close()
        self._breakers.forget(lambda key, _: (key.owner, key.server) == (owner, server))

    async def drop(self, owner: UserId, *, for_good: bool) -> None:
        """Close everything of a user's; returns once nothing of it is left, children included.

        ``for_good``: nothing is opened for them for a while, whoever asks.
        """
        if for_good:
            self._barred[owner] = asyncio.get_running_loop().time() + BARRED_SECONDS
        self._drop_wishes(lambda key: key.owner == owner)
        ending = {task for each, task in self._tasks.items() if each.owner == owner}
        for connection in list(self._tasks):
            if connection.owner == owner:
                connection.close()
        if ending:
            await asyncio.wait(ending)
        self._breakers.forget(lambda key, _: key.owner == owner)

    @property
    def owners(self) -> frozenset[UserId]:
        """Who has connections, those that are being opened or closed included."""
        return frozenset(each.owner for each in self._tasks if each.owner is not None)

    def let_go(self, owner: UserId | None = None, server: str | None = None) -> None:
        """Close a user's connections to a server, or all of all users, once they are not in use.

        For where a credential may be gone and nobody said so: each call asks before it is made.
        """

        def is_meant(key: ConnectionKey) -> bool:
            return key.owner is not None and (
                owner is None or (key.owner, key.server) == (owner, server)
            )

        self._drop_wishes(is_meant)
        for connection in list(self._tasks):
            if is_meant(connection.key):
                connection.is_outdated = True
                self._close_if_outdated(connection)

    def _drop_wishes(self, is_meant: Callable[[ConnectionKey], bool]) -> None:
        self._wishes.end(is_meant)
        self._tell()

    def listed(
        self, owner: UserId | None, server: McpServer, credential_version: int
    ) -> tuple[ListedTool, ...] | None:
        """What a server offers just now; None where no connection to it is open."""
        key = ConnectionKey(owner, server.name, server.version, credential_version)
        found = self._current.get(key)
        return found.tools if found is not None and found.is_open else None

    @property
    def open_connections(self) -> int:
        """How many there are, those that are being opened or closed included."""
        return len(self._tasks)

    async def _acquire(
        self, owner: UserId | None, server: McpServer, credential: Credential
    ) -> Connection:
        shared = server.scope is Scope.SHARED
        if not shared and owner is None:
            raise ValueError("only a shared server has connections of nobody's")
        key = ConnectionKey(
            None if shared else owner, server.name, server.version, credential.version
        )
        connection = await self._find_or_open(key, server, credential)
        connection.leases += 1
        try:
            # Shielded: whoever gives up waiting leaves the others their connection.
            await asyncio.shield(connection.opened)
        except asyncio.CancelledError:
            self._give_back(connection)
            raise
        if connection.ended.done():
            self._give_back(connection)
            raise ToolServerUnavailable(server.name, connection.ended.result())
        return connection

    async def _find_or_open(
        self, key: ConnectionKey, server: McpServer, credential: Credential
    ) -> Connection:
        """The connection of this key; opened once, however many want it."""
        reason = Reason.FULL
        with suppress(TimeoutError), self._wishes.one(key) as wish:
            async with asyncio.timeout(server.timeouts.connect):
                while True:
                    found = self._current.get(key)
                    if found is not None and not found.is_closing:
                        return found
                    is_over = self._stopped or wish.is_over or key.owner in self._barred
                    if is_over or self._surroundings is None:
                        reason = Reason.CLOSED
                        break
                    breaker = self._breakers.of(key)
                    now = asyncio.get_running_loop().time()
                    if breaker.rests(now):
                        reason = Reason.RESTING
                        break
                    if (pause := breaker.wait_seconds(now)) > 0:
                        await asyncio.sleep(pause)
                        continue
                    decision = admit(key.owner, self._tasks, self._limits)
                    if decision.admitted:
                        return self._open(key, server, credential, self._surroundings)
                    if decision.evict is not None:
                        decision.evict.close()
                        continue
                    await self._freed.wait()
        self._watch.refused(server.log_name, reason)
        raise ToolServerUnavailable(server.name, reason)

    def _open(
        self,
        key: ConnectionKey,
        server: McpServer,
        credential: Credential,
        surroundings: Surroundings,
    ) -> Connection:
        breaker = self._breakers.of(key)
        self._retire_others(key)
        connection = Connection(
            key, server, breaker.worked, self._watch, tools_only=breaker.tools_only
        )
        connection.opened.add_done_callback(lambda _: self._opened(connection))
        connection.ended.add_done_callback(lambda _: self._lost(connection, breaker))
        task = connection.start(credential, surroundings)
        self._current[key] = connection
        self._tasks[connection] = task
        self._watch.opened(server.log_name)
        task.add_done_callback(lambda _: self._gone(connection))
        return connection

    def _retire_others(self, key: ConnectionKey) -> None:
        """What another configuration or credential opened is closed once it is not in use."""
        for connection in list(self._tasks):
            other = connection.key
            if (other.owner, other.server) == (key.owner, key.server) and other != key:
                connection.is_outdated = True
                self._close_if_outdated(connection)

    @staticmethod
    def _close_if_outdated(connection: Connection) -> None:
        if connection.is_outdated and connection.leases == 0:
            connection.close()

    def _give_back(self, connection: Connection) -> None:
        connection.leases -= 1
        connection.last_used = asyncio.get_running_loop().time()
        self._close_if_outdated(connection)
        if connection.leases == 0:
            self._tell()

    def _opened(self, connection: Connection) -> None:
        if connection.is_open:
            self._standings.works(connection.key, connection.server)

    def _lost(self, connection: Connection, breaker: Breaker) -> None:
        """A connection can be used no more: the next who wants one gets another."""
        if self._current.get(connection.key) is connection:
            del self._current[connection.key]
        if connection.ended.result() is not Reason.CLOSED:
            now = asyncio.get_running_loop().time()
            name, reason = connection.server.log_name, connection.ended.result()
            self._watch.lost(name, reason)
            self._telling.lost(name, reason, now)
            if connection.is_asked_beside:
                breaker.failed_beside(now)
            else:
                breaker.failed(now)
                self._standings.fails(connection.key, connection.server, reason)

    def _gone(self, connection: Connection) -> None:
        del self._tasks[connection]
        self._watch.closed(connection.server.log_name)
        self._tell()

    def _tell(self) -> None:
        """Wake everybody who waits for room."""
        self._freed.set()
        self._freed = asyncio.Event()

    async def _sweep(self) -> None:
        idle = self._limits.idle_seconds
        while True:
            await asyncio.sleep(min(idle / _SWEEPS_PER_IDLE_TIME, _LONGEST_SWEEP_SECONDS))
            now = asyncio.get_running_loop().time()
            for connection in list(self._tasks):
                if connection.is_idle and now - connection.last_used >= idle:
                    connection.close()
            self._breakers.forget(partial(self._needs_no_breaker, now))
            self._barred = {owner: end for owner, end in self._barred.items() if end > now}

    def _needs_no_breaker(self, now: float, key: ConnectionKey, breaker: Breaker) -> bool:
        return breaker.is_over(now) and key not in self._current
