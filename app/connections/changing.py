"""What a person does to their connections: add, remove, use, set a key, say when to be asked.

What was committed is announced: workers let go of what was revoked and look at what is to be
checked, the person's feeds tell of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from app.connections.errors import (
    ConnectionExists,
    ConnectionNotFound,
    NoKeyWanted,
    NotYourServer,
    OwnServersNotAllowed,
    TooManyOwnServers,
)
from app.connections.keeping import CredentialKeeper
from app.connections.known import connection_key
from app.connections.oauth.tokens import Tokens
from app.connections.own import MOST_OWN_SERVERS, accepted_key
from app.connections.standing import stored_kind
from app.logging import facts_of
from tenancy.errors import StoaError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from app.connections.own import OwnServer
    from app.connections.refreshing import Authorizing
    from app.connections.rows import Dropping, SealedCredential
    from app.connections.standing import UserConnections, UserServer
    from app.tools.approval.ruling import Ask
    from app.tools.servers import McpServer
    from tenancy.database.signals import Announcer
    from tenancy.principal import Owner
    from tenancy.vault import Vault

log = structlog.get_logger(__name__)


class ConnectionChanges:
    """Changes a person's connections, and says so to whom it concerns."""

    def __init__(
        self,
        connections: UserConnections,
        vault: Vault,
        announcer: Announcer,
        oauth: Authorizing,
    ) -> None:
        self._connections = connections
        self._rows = connections.rows
        self._keeper = CredentialKeeper(self._rows, vault)
        self._announcer = announcer
        self._oauth = oauth

    async def add(self, owner: Owner, server: OwnServer, key: str | None) -> UserServer:
        """Add a server of the person's own, with its key where it wants one.

        Raises:
            OwnServersNotAllowed, ConnectionExists, TooManyOwnServers: it cannot be added.
            UnacceptableServer: the key cannot go into a header.
            VaultNotConfigured: it wants a credential, and none could be kept.
        """
        if not self._connections.own_allowed:
            raise OwnServersNotAllowed
        if self._connections.is_of_the_operator(server.name):
            raise ConnectionExists
        if server.auth != "none":
            self._keeper.assert_configured()
        plain = None if key is None else accepted_key(key).encode()
        added = await self._rows.add(
            owner, server.name, server.url, server.auth, server.header, most=MOST_OWN_SERVERS
        )
        if added == "too_many":
            raise TooManyOwnServers
        if added == "exists":
            raise ConnectionExists
        found = await self._connections.find(owner, server.name)
        if plain is not None:
            await self._keep_key(owner, found, plain)
        self._announce(owner, found.connection_id, check=True)
        return await self._connections.find(owner, server.name)

    async def remove(self, owner: Owner, name: str) -> None:
        """Remove a server of the person's own, and everything that was kept of it.

        Raises:
            ConnectionNotFound: there is none of that name.
            NotYourServer: it is the operator's.
        """
        found = await self._connections.find(owner, name)
        if not found.server.is_own:
            raise NotYourServer
        await self._drop(owner, found.server, "remove")

    async def connect(self, owner: Owner, name: str, *, anew: bool = False) -> UserServer:
        """Put a server into use and have a worker look at it; ``anew`` by a new connection.

        Raises:
            ConnectionNotFound: there is none of that name.
            OwnServersNotAllowed: it is the person's own, and none may be used.
        """
        found = await self._connections.find(owner, name)
        own = found.server.is_own
        if own and not self._connections.own_allowed:
            raise OwnServersNotAllowed
        connection_id = await self._rows.want_check(owner, name, own=own, anew=anew)
        if connection_id is None:
            raise ConnectionNotFound
        self._announce(owner, connection_id, check=True, revoked=anew)
        return await self._connections.find(owner, name)

    async def disconnect(self, owner: Owner, name: str) -> UserServer:
        """Use a server no more: its credential is forgotten here and revoked where it came from.

        Raises:
            ConnectionNotFound: there is none of that name.
        """
        found = await self._connections.find(owner, name)
        await self._drop(owner, found.server, "disconnect")
        return await self._connections.find(owner, name)

    async def say_approval(self, owner: Owner, name: str, rules: Mapping[str, Ask]) -> UserServer:
        """Take a person's word on when they want to be asked before a server's tools are called.

        It holds from now on, for runs under way too. It replaces what they said before, and makes
        nothing looser than the operator's rules.

        Raises:
            ConnectionNotFound: there is no server of that name.
        """
        found = await self._connections.find(owner, name)
        said = {tool: ask.value for tool, ask in rules.items()}
        connection_id = await self._rows.say_approval(owner, name, said, own=found.server.is_own)
        if connection_id is None:
            raise ConnectionNotFound
        self._announce(owner, connection_id)
        return await self._connections.find(owner, name)

    async def set_key(self, owner: Owner, name: str, key: str) -> None:
        """Keep a key for a server, put it into use, and have a worker look at it.

        Raises:
            ConnectionNotFound: there is no server of that name.
            NoKeyWanted: it takes none.
            UnacceptableServer: the key cannot be sent.
            VaultNotConfigured: it could not be kept.
        """
        found = await self._connections.find(owner, name)
        if stored_kind(found.server) != "key":
            raise NoKeyWanted
        if found.server.is_own and not self._connections.own_allowed:
            raise OwnServersNotAllowed
        plain = accepted_key(key).encode()
        self._keeper.assert_configured()
        await self._keep_key(owner, found, plain)

    async def forget_key(self, owner: Owner, name: str) -> None:
        """Forget a server's key.

        Raises:
            ConnectionNotFound: there is no server of that name.
            NoKeyWanted: it takes none.
        """
        found = await self._connections.find(owner, name)
        if stored_kind(found.server) != "key":
            raise NoKeyWanted
        if found.has_credential:
            await self._drop(owner, found.server, "forget")

    async def find_server(self, owner: Owner, name: str) -> McpServer | None:
        """One of the servers that the person may use; None if there is none of that name."""
        try:
            server = (await self._connections.find(owner, name)).server
        except ConnectionNotFound:
            return None
        return server if self._connections.own_allowed or not server.is_own else None

    async def keep_tokens(
        self, owner: Owner, server: McpServer, tokens: Tokens, version: int
    ) -> bool:
        """Keep what an authorization gave; False where the connection was changed meanwhile."""
        found = await self._connections.find(owner, server.name)
        if found.connection_id is None or found.server.version != server.version:
            return False
        kept = await self._keeper.keep(
            owner,
            found.connection_id,
            "oauth",
            tokens.plain(),
            expires_in=tokens.expires_in,
            expected_version=version,
        )
        if kept:
            self._announce(owner, found.connection_id, check=True, revoked=True)
        return kept

    async def _keep_key(self, owner: Owner, found: UserServer, plain: bytes) -> None:
        connection_id = found.connection_id
        if connection_id is None:  # nothing was stored of it yet
            name, own = found.server.name, found.server.is_own
            connection_id = await self._rows.store(owner, name, own=own)
        if connection_id is None or not await self._keeper.keep(owner, connection_id, "key", plain):
            raise ConnectionNotFound
        self._announce(owner, connection_id, check=True, revoked=True)

    async def _drop(self, owner: Owner, server: McpServer, how: Dropping) -> None:
        dropped = await self._rows.drop(owner, server.name, how, own=server.is_own)
        if dropped is None:
            raise ConnectionNotFound
        self._announce(owner, dropped.connection_id, revoked=True)
        if dropped.kind == "oauth":
            await self._revoke(owner, server, dropped)

    async def _revoke(self, owner: Owner, server: McpServer, dropped: SealedCredential) -> None:
        """Give tokens back. They are forgotten already: what fails here changes nothing of that."""
        try:
            plain = self._keeper.opened(owner, dropped)
        except StoaError as error:
            log.warning("a credential was forgotten, but not revoked", **facts_of(error))
            return
        if plain is not None:
            await self._oauth.revoke(server, Tokens.read(plain))

    def _announce(
        self,
        owner: Owner,
        connection_id: UUID | None,
        *,
        check: bool = False,
        revoked: bool = False,
    ) -> None:
        if connection_id is None:
            return
        key = connection_key(owner.user_id, connection_id)
        if revoked:
            self._announcer.connection_revoked(key)
        self._announcer.connection_changed(key)
        if check:
            self._announcer.check_wanted()
