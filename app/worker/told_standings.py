"""What becomes of people's connections to tool servers, noted as it happens: they are told of it.

A server that dies while nobody uses it is told of too, and so is one that works again. Of what
everybody shares, whoever uses it next finds out.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog
from tenacity import AsyncRetrying, retry_if_exception_type, wait_random_exponential

from app.connections.standing import state_of
from app.logging import facts_of, record_failure
from app.stopping import end_task, take_error
from tenancy.database.engine import DatabaseUnavailable
from tenancy.errors import StoaError

if TYPE_CHECKING:
    from app.connections.rows import StoredState
    from app.connections.standing import UserConnections
    from app.tools.pool.failures import Reason
    from app.tools.pool.leased import ConnectionKey
    from app.tools.servers import McpServer
    from tenancy.principal import UserId

log = structlog.get_logger(__name__)

_LONGEST_PAUSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class _Owner:
    """Whose connection it is."""

    user_id: UserId


@dataclass(frozen=True, slots=True)
class _Note:
    """How a connection stands, under which version of it."""

    server: McpServer
    version: int
    state: StoredState
    reason: Reason | None


class ToldStandings:
    """Writes down how each person's connection stands: the newest it heard, and that in order."""

    def __init__(self, connections: UserConnections) -> None:
        self._connections = connections
        self._newest: dict[tuple[UserId, str], _Note] = {}
        self._writing: dict[tuple[UserId, str], asyncio.Task[None]] = {}

    def works(self, key: ConnectionKey, server: McpServer) -> None:
        """A new one is open, and its server has listed what it offers."""
        self._hear(key, _Note(server, key.credential_version, "available", None))

    def fails(self, key: ConnectionKey, server: McpServer, reason: Reason) -> None:
        """It could not be opened, or ended though nobody had closed it."""
        self._hear(key, _Note(server, key.credential_version, state_of(reason), reason))

    async def aclose(self) -> None:
        """Write no more."""
        for task in tuple(self._writing.values()):
            await end_task(task)

    def _hear(self, key: ConnectionKey, note: _Note) -> None:
        if key.owner is None:
            return
        of = (key.owner, key.server)
        self._newest[of] = note
        if of not in self._writing:
            task = asyncio.create_task(self._write(of), name="standing of a connection")
            self._writing[of] = task
            task.add_done_callback(take_error)

    async def _write(self, of: tuple[UserId, str]) -> None:
        try:
            while (note := self._newest.pop(of, None)) is not None:
                await self._write_one(of, note)
        finally:
            del self._writing[of]
            self._newest.pop(of, None)

    async def _write_one(self, of: tuple[UserId, str], note: _Note) -> None:
        """Write a note, however long the database is away, unless there is a newer one by then."""
        try:
            async for attempt in AsyncRetrying(
                retry=retry_if_exception_type(DatabaseUnavailable),
                wait=wait_random_exponential(0.1, max=_LONGEST_PAUSE_SECONDS),
            ):
                with attempt:
                    if of in self._newest:
                        return
                    await self._connections.store_listing(
                        _Owner(of[0]), note.server, note.version, None, note.state, note.reason
                    )
        except StoaError as error:  # they are suspended, or leave
            log.info("how a connection stands was not noted", **facts_of(error))
        except Exception as error:  # noqa: BLE001 - of this one: what is heard next is noted
            record_failure("standing of a connection", error)
