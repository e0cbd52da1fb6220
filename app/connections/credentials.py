"""What a user's connection proves itself with: opened where it is used, renewed before it ends."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING

import structlog

from app.connections.errors import CredentialMissing
from app.connections.keeping import CredentialKeeper
from app.connections.oauth.tokens import Tokens
from app.connections.refreshing import Refresher
from app.connections.rows import FIRST_VERSION, StoredCredential
from app.connections.standing import stored_kind
from app.logging import tenant_reference
from app.tools.servers import Credential, CredentialKind, HttpTransport, McpServer, Scope
from tenancy.vault import VaultNotConfigured, VaultUnreadable, WrappingKeyMissing

if TYPE_CHECKING:
    from uuid import UUID

    from app.connections.known import KnownConnections
    from app.connections.refreshing import Authorizing
    from app.connections.rows import ConnectionRows
    from tenancy.database.signals import Announcer
    from tenancy.principal import Owner
    from tenancy.vault import Vault

log = structlog.get_logger(__name__)

_MOST_RENEWED = 10_000
STILL_NEW_SECONDS = 60.0
"""An authorization that is refused so soon after it was renewed is none."""


class Credentials:
    """Gives each call the credential that its user has now.

    Args:
        rows: where they are kept.
        vault: what they are sealed by.
        oauth: renews authorizations.
        announcer: tells the person's feed when one is over.
        known: remembers which connections are in use here, for when one is revoked.
    """

    def __init__(
        self,
        rows: ConnectionRows,
        vault: Vault,
        oauth: Authorizing,
        announcer: Announcer,
        known: KnownConnections,
    ) -> None:
        self._rows = rows
        self._keeper = CredentialKeeper(rows, vault)
        self._refresher = Refresher(rows, self._keeper, oauth, announcer)
        self._known = known
        self._renewed: OrderedDict[UUID, tuple[int, float]] = OrderedDict()
        """What was renewed because a server refused what was before: versions, and since when."""
        self._said: set[tuple[str, ...]] = set()

    async def current(self, owner: Owner, server: McpServer) -> Credential:
        """The credential for a call that is about to be made.

        Its version is the connection's: one that was revoked is never given out again. An
        authorization that is about to end is renewed first, by one of all who ask for it.

        Raises:
            CredentialMissing: there is none, or the server may not be used any more.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        return await self._current(owner, server, may_renew=True)

    async def _current(self, owner: Owner, server: McpServer, *, may_renew: bool) -> Credential:
        if server.scope is Scope.SHARED:
            return Credential()
        stored = await self._rows.credential(owner, server.name)
        if stored is None and not server.is_own and stored_kind(server) is None:
            self._known.remember(owner.user_id, None, server.name)
            return Credential(FIRST_VERSION)
        if stored is None and not server.is_own:
            raise _missing(server)
        if stored is None or not stored.enabled or stored.url != _own_url(server):
            raise CredentialMissing(server.name, "disconnected")
        self._known.remember(owner.user_id, stored.connection_id, server.name)
        kind = stored_kind(server)
        if kind is None:
            return Credential(stored.version)
        if stored.kind != kind:
            raise _missing(server)
        if kind == "oauth":
            return await self._authorized(owner, server, stored, may_renew=may_renew)
        key = self._opened(owner, server, stored).decode()
        return _with_key(server, stored.version, key)

    async def refused(self, owner: Owner, server: McpServer, credential: Credential) -> None:
        """Hear that a server does not take a credential: an authorization is renewed, once.

        After this ``current`` gives another one.

        Raises:
            CredentialMissing: there is no other. One that was refused although it was new is
                forgotten, and the person is asked again.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        stored = await self._rows.credential(owner, server.name)
        if stored is None or stored_kind(server) != "oauth" or stored.kind != "oauth":
            raise _missing(server)
        if stored.version != credential.version:
            return  # somebody else was quicker
        tokens = Tokens.read(self._opened(owner, server, stored))
        version, since = self._renewed.get(stored.connection_id, (None, 0.0))
        if version == stored.version and time.monotonic() < since + STILL_NEW_SECONDS:
            await self._refresher.give_up(owner, stored)
            raise _missing(server)
        if not await self._refresher.refreshed(owner, server, stored, tokens):
            raise CredentialMissing(server.name, "unreachable")
        renewed = await self._rows.credential(owner, server.name)
        if renewed is not None:
            self._note_renewed(renewed)

    def _note_renewed(self, stored: StoredCredential) -> None:
        self._renewed[stored.connection_id] = (stored.version, time.monotonic())
        self._renewed.move_to_end(stored.connection_id)
        while len(self._renewed) > _MOST_RENEWED:
            self._renewed.popitem(last=False)

    async def aclose(self) -> None:
        """Finish renewals that are under way: what they were given would be lost."""
        await self._refresher.aclose()

    async def _authorized(
        self, owner: Owner, server: McpServer, stored: StoredCredential, *, may_renew: bool
    ) -> Credential:
        tokens = Tokens.read(self._opened(owner, server, stored))
        if not may_renew or not self._refresher.is_due(stored, tokens):
            return Credential(stored.version, headers=tokens.headers())
        if await self._refresher.refreshed(owner, server, stored, tokens):
            # Some tokens live so briefly that a new one would be renewed at once, for ever.
            return await self._current(owner, server, may_renew=False)
        return Credential(stored.version, headers=tokens.headers())

    def _opened(self, owner: Owner, server: McpServer, stored: StoredCredential) -> bytes:
        try:
            opened = self._keeper.opened(owner, stored)
        except WrappingKeyMissing as error:
            self._say_once("a key of the vault is missing", key_id=error.key_id)
            raise CredentialMissing(server.name, "vault") from None
        except VaultNotConfigured:
            self._say_once("there are credentials, but no keys of the vault")
            raise CredentialMissing(server.name, "vault") from None
        except VaultUnreadable:
            whose = tenant_reference(owner.user_id)
            log.error("a credential does not open", tenant=whose)  # noqa: TRY400 - no trace
            raise CredentialMissing(server.name, "vault") from None
        if opened is None:
            raise _missing(server)
        return opened

    def _say_once(self, what: str, **facts: str) -> None:
        """For what stays as it is until this process is started anew."""
        if (said := (what, *facts.values())) not in self._said:
            self._said.add(said)
            log.error(what, **facts)


def _missing(server: McpServer) -> CredentialMissing:
    match stored_kind(server):
        case "key":
            return CredentialMissing(server.name, "needs_key")
        case "oauth":
            return CredentialMissing(server.name, "needs_authorization")
        case None:  # one of the person's own, that is gone
            return CredentialMissing(server.name, "disconnected")


def _own_url(server: McpServer) -> str | None:
    if server.is_own and isinstance(server.transport, HttpTransport):
        return server.transport.url
    return None


def _with_key(server: McpServer, version: int, key: str) -> Credential:
    rule = server.credential
    said = {rule.name: rule.template.replace("{key}", key)}
    if rule.kind is CredentialKind.ENVIRONMENT:
        return Credential(version, env=said)
    return Credential(version, headers=said)
