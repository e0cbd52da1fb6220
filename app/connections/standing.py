"""Which servers there are for one person, and how each stands with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from app.connections.errors import ConnectionNotFound
from app.connections.known import connection_key
from app.connections.listings import (
    from_stored,
    readable_from_stored,
    readable_to_stored,
    to_stored,
)
from app.connections.rows import (
    FIRST_VERSION,
    ConnectionRow,
    ConnectionRows,
    Standing,
    StoredState,
)
from app.tools.approval.word import Word
from app.tools.catalogue import own_server
from app.tools.names import SERVER_NAME
from app.tools.readable import NOTHING_SAID, ListedPrompt, ListedResource, Readable
from app.tools.servers import CredentialKind, CredentialRule, ListedTool, McpServer, Scope

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from tenancy.database.signals import Announcer
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner

State = Literal[
    "unknown",
    "checking",
    "available",
    "unavailable",
    "needs_key",
    "needs_authorization",
    "disconnected",
]
NOT_ALLOWED = "own_servers_not_allowed"


@dataclass(frozen=True, slots=True)
class UserServer:
    """A server as one person has it."""

    server: McpServer
    connection_id: UUID | None
    """None where nothing is stored of it."""
    version: int
    """Grows with each change of the credential and of whether it may be used."""
    enabled: bool
    has_credential: bool
    state: State
    reason: str | None = None
    listing: tuple[ListedTool, ...] | None = field(default=None, repr=False)
    """What it listed last; None unless that was this server and this version of the connection."""
    expires_at: datetime | None = None
    listed_at: datetime | None = None
    updated_at: datetime | None = None
    word: Word = field(default_factory=Word)
    """When the person wants to be asked before its tools are called."""
    standing_version: int = 0
    """Grows whenever it stands otherwise; 0 where nothing is stored of it."""
    failing_since: datetime | None = None
    """None unless it is in use and does not work, or did not when it was last spoken to."""
    failing_reason: str | None = None
    """Why not, at first."""
    resources: tuple[ListedResource, ...] = field(default=(), repr=False)
    """What it lets be read; none unless it was listed by this server and this version."""
    prompts: tuple[ListedPrompt, ...] = field(default=(), repr=False)


class UserConnections:
    """Tells which servers there are for whom: the operator's and their own.

    Args:
        database: the tenant door.
        catalogue: the operator's servers, by name.
        announcer: tells a person's feed when a server stands otherwise.
        own_allowed: whether people may have servers of their own.
    """

    def __init__(
        self,
        database: TenantDatabase,
        catalogue: Mapping[str, McpServer],
        announcer: Announcer,
        *,
        own_allowed: bool,
    ) -> None:
        self.rows = ConnectionRows(database)
        self._catalogue = catalogue
        self._announcer = announcer
        self.own_allowed = own_allowed

    async def of(self, owner: Owner) -> Sequence[UserServer]:
        """The servers that the person's runs may use. One call of the database.

        Raises:
            DatabaseUnavailable: Postgres cannot be reached.
        """
        return [
            each
            for each in await self.all(owner)
            if each.enabled and (self.own_allowed or not each.server.is_own)
        ]

    async def all(self, owner: Owner) -> Sequence[UserServer]:
        """Every server, also those that the person has switched off, by name."""
        rows = {row.server: row for row in await self.rows.all(owner)}
        names = {*self._catalogue, *(row.server for row in rows.values() if row.url is not None)}
        return [self._standing(name, rows.get(name)) for name in sorted(names)]

    async def find(self, owner: Owner, name: str) -> UserServer:
        """One of them.

        Raises:
            ConnectionNotFound: there is none of that name for this person.
        """
        if not SERVER_NAME.fullmatch(name):
            raise ConnectionNotFound
        row = await self.rows.of_server(owner, name)
        if name not in self._catalogue and (row is None or row.url is None):
            raise ConnectionNotFound
        return self._standing(name, row)

    async def word(self, owner: Owner, server: McpServer) -> Word:
        """What the person says now of when they want to be asked before its tools are called.

        Raises:
            DatabaseUnavailable: Postgres cannot be reached.
        """
        return _word(server, await self.rows.of_server(owner, server.name))

    async def store_listing(
        self,
        owner: Owner,
        server: McpServer,
        version: int,
        listing: Sequence[ListedTool] | None,
        state: StoredState,
        reason: str | None = None,
        readable: Readable = NOTHING_SAID,
    ) -> None:
        """Note how a server stood when it was spoken to under a version of the connection.

        What is the same as before is not written. A version that is over is not listened to. Of
        what is ``readable``, a part that the server has not said this time is what it was.

        Raises:
            UserUnavailable: the user is suspended, being erased, or gone.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        standing = standing_of(server, listing, state, reason, readable)
        noted = await self.rows.store_listing(
            owner, server.name, version, standing, own=server.is_own
        )
        if noted is not None:
            self._announcer.connection_changed(connection_key(owner.user_id, noted))

    def is_of_the_operator(self, name: str) -> bool:
        """Whether a server of the catalogue has this name."""
        return name in self._catalogue

    def of_row(self, row: ConnectionRow) -> UserServer | None:
        """The server of a stored connection; None where the operator offers it no more."""
        if row.url is None and row.server not in self._catalogue:
            return None
        return self._standing(row.server, row)

    def _standing(self, name: str, row: ConnectionRow | None) -> UserServer:
        """How a server stands.

        One's own goes before one of the operator's that was given the same name since: what is
        stored is its credential, and goes nowhere else.
        """
        if row is None:
            return UserServer(
                self._catalogue[name],
                None,
                FIRST_VERSION,
                True,
                False,
                _unmet(self._catalogue[name], None) or "unknown",
                word=_word(self._catalogue[name], None),
            )
        server = (
            self._catalogue[name] if row.url is None else own_server(name, row.url, own_rule(row))
        )
        state, reason = self._state(server, row)
        is_current = row.listing_version == server.version and row.listed_for == row.version
        listing = from_stored(row.listing) if row.listing is not None and is_current else None
        readable = readable_from_stored(None if listing is None else row.readable)
        return UserServer(
            server,
            row.connection_id,
            row.version,
            row.enabled,
            row.credential_kind is not None,
            state,
            reason,
            listing,
            row.expires_at,
            row.listed_at if listing is not None else None,
            row.updated_at,
            _word(server, row),
            row.standing_version,
            row.failing_since,
            row.failing_reason,
            readable.resources or (),
            readable.prompts or (),
        )

    def _state(self, server: McpServer, row: ConnectionRow) -> tuple[State, str | None]:
        if not row.enabled:
            return "disconnected", None
        if server.is_own and not self.own_allowed:
            return "unavailable", NOT_ALLOWED
        if row.check_wanted_at is not None:
            return "checking", None
        unmet = _unmet(server, row)
        return (unmet, None) if unmet is not None else (row.state, row.reason)


def standing_of(
    server: McpServer,
    listing: Sequence[ListedTool] | None,
    state: StoredState,
    reason: str | None,
    readable: Readable = NOTHING_SAID,
) -> Standing:
    """What is stored of how a server stood."""
    if listing is None:
        return Standing(state, reason)
    said = readable_to_stored(readable)
    return Standing(state, reason, to_stored(listing), server.version, said)


def state_of(reason: str) -> StoredState:
    """How a server stands that could not be spoken to for this reason."""
    match reason:
        case "needs_key" | "needs_authorization":
            return reason
        case _:
            return "unavailable"


def _word(server: McpServer, row: ConnectionRow | None) -> Word:
    """What a person says of a server, and with which grant of theirs it is called."""
    grant = FIRST_VERSION if row is None else row.grant_version
    said, version = ({}, 0) if row is None else (row.approval, row.approval_version)
    return Word.read(said, version, None if server.scope is Scope.SHARED else grant)


def own_rule(row: ConnectionRow) -> CredentialRule:
    """What credential a person's own server takes."""
    if row.auth == "oauth":
        return CredentialRule(CredentialKind.OAUTH)
    if row.auth == "none":
        return CredentialRule()
    name = row.header or "Authorization"
    return CredentialRule(
        CredentialKind.HEADER, name, "Bearer {key}" if name.lower() == "authorization" else "{key}"
    )


def stored_kind(server: McpServer) -> Literal["key", "oauth"] | None:
    """As what a server's credential is stored; None where it takes none from a person."""
    if server.scope is Scope.SHARED:
        return None
    match server.credential.kind:
        case CredentialKind.HEADER | CredentialKind.ENVIRONMENT:
            return "key"
        case CredentialKind.OAUTH:
            return "oauth"
        case CredentialKind.NONE:
            return None


def _unmet(
    server: McpServer, row: ConnectionRow | None
) -> Literal["needs_key", "needs_authorization"] | None:
    """What a person has to do before the server can be used."""
    kind = stored_kind(server)
    if kind is None or (row is not None and row.credential_kind == kind):
        return None
    return "needs_key" if kind == "key" else "needs_authorization"
