"""One process's worth of people's connections, with connections to the database of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from app.connections.changing import ConnectionChanges
from app.connections.credentials import Credentials
from app.connections.keeping import CredentialKeeper
from app.connections.known import KnownConnections
from app.connections.oauth.client import PublicAddress
from app.connections.oauth.oauth import OAuth
from app.connections.standing import UserConnections
from app.tools.servers import McpServer
from tenancy.database.signals import Announcer
from tenancy.database.tenant import TenantDatabase
from tenancy.vault import Vault, WrappingKeys
from tests.integration.connections.oauth.stage import KEYS
from tests.support.tenancy import TestDatabase


class HeardAnnouncer(Announcer):
    """Keeps what it would say."""

    def said(self, channel: str) -> deque[str]:
        """The keys that wait to be told on a channel."""
        return self._keys[channel]

    def forget(self) -> None:
        """Begin anew."""
        for keys in self._keys.values():
            keys.clear()


class Process:
    """What a web process and a worker have of connections."""

    def __init__(
        self,
        database: TenantDatabase,
        vault: Vault,
        catalogue: Mapping[str, McpServer],
        *,
        own_allowed: bool,
    ) -> None:
        self.announcer = HeardAnnouncer("")
        self.known = KnownConnections()
        self.oauth = OAuth(PublicAddress("https://stoa.example.com"))
        self.connections = UserConnections(
            database, catalogue, self.announcer, own_allowed=own_allowed
        )
        self.rows = self.connections.rows
        self.keeper = CredentialKeeper(self.rows, vault)
        self.changes = ConnectionChanges(self.connections, vault, self.announcer, self.oauth)
        self.credentials = Credentials(self.rows, vault, self.oauth, self.announcer, self.known)


@asynccontextmanager
async def running_process(
    database: TestDatabase,
    *servers: McpServer,
    keys: WrappingKeys | None = KEYS,
    own_allowed: bool = True,
) -> AsyncIterator[Process]:
    """A process whose operator offers these servers, and has these keys of the vault."""
    door = TenantDatabase(database.settings("service", pool_size=8))
    catalogue = {each.name: each for each in servers}
    process = Process(door, Vault(door, keys), catalogue, own_allowed=own_allowed)
    try:
        yield process
    finally:
        await process.credentials.aclose()
        await door.close()
