"""What needs the person: an authorization is begun, they are asked elsewhere, it is finished."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import httpx2
from mcp.client.auth.utils import issuers_match

from app.connections.oauth.client import Client, client_for
from app.connections.oauth.discovery import Discovered, Discovery
from app.connections.oauth.endpoint import UNREACHABLE
from app.connections.oauth.errors import (
    AuthorizationDenied,
    AuthorizationOutdated,
    AuthorizationServerUnavailable,
    OAuthIssuerMismatch,
    OAuthNotUsed,
)
from app.connections.oauth.oauth import OAuth, takes_authorization
from app.connections.oauth.pending import (
    Pending,
    PendingAuthorizations,
    Sealing,
    Taken,
    new_secret,
)
from app.connections.oauth.reach import REQUEST_SECONDS, trusted_origins
from app.connections.oauth.tokens import Grant, Tokens
from tenancy.errors import StoaError, UserUnavailable

if TYPE_CHECKING:
    from app.tools.servers import McpServer
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner

_DISCOVERY_SECONDS = 20.0


class Connections(Protocol):
    """What is needed of a person's connections."""

    async def find_server(self, owner: Owner, name: str) -> McpServer | None:
        """One of the servers that the user may use."""
        ...

    async def keep_tokens(
        self, owner: Owner, server: McpServer, tokens: Tokens, version: int
    ) -> bool:
        """Keep tokens as a connection's credential; False where it has another version now."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """What the browser brings back. All of it is somebody's text."""

    state: str = field(repr=False)
    code: str | None = field(default=None, repr=False)
    error: str | None = None
    issuer: str | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """What became of an authorization."""

    server: str
    failure: StoaError | None = None
    """None: the service may act for the person now."""


class Authorizations:
    """Authorizations of people at MCP servers, from the wish to the tokens."""

    def __init__(
        self, database: TenantDatabase, vault: Sealing, connections: Connections, oauth: OAuth
    ) -> None:
        self._pending = PendingAuthorizations(database, vault)
        self._connections = connections
        self._oauth = oauth

    def client_document(self) -> dict[str, Any] | None:
        """What the service's client id leads to; None where it has none of its own."""
        return self._oauth.address.document()

    async def begin(self, owner: Owner, server: McpServer) -> str:
        """Return the address at which the person's browser asks them for their consent.

        Raises:
            OAuthNotUsed, OAuthNotConfigured, OAuthRefused: there is none to be had.
            AuthorizationOutdated: the server was the person's own, and is not any more.
            VaultNotConfigured: nothing could be kept of it.
            AuthorizationServerUnavailable: somebody cannot be reached, or answers nonsense.
        """
        if not takes_authorization(server):
            raise OAuthNotUsed
        address = self._oauth.address
        redirect_uri = address.callback
        found = await self._discover(server)
        client = client_for(server, found.issuer, found.metadata, address)
        pending = _pending(server, found, client, redirect_uri)
        state = new_secret()
        async with self._oauth.session(server, client) as oauth:
            url, _ = oauth.create_authorization_url(
                found.authorization_endpoint,
                state=state,
                code_verifier=pending.verifier,
                redirect_uri=redirect_uri,
                scope=found.scope,
                resource=found.resource,
            )
        await self._pending.keep(owner, state, pending, is_own=server.is_own)
        return str(url)

    async def finish(self, owner: Owner, answer: Answer) -> Finished:
        """Take the authorization that this answers, and connect by what comes of it.

        It is over with this, however it ends. A state of somebody else's finds nothing and
        changes nothing.

        Raises:
            AuthorizationNotFound: this user has none under way with this state.
            VaultUnreadable: what was kept of it does not open.
        """
        taken = await self._pending.take(owner, answer.state)
        try:
            await self._complete(owner, taken, answer)
        except StoaError as failure:
            return Finished(taken.pending.server, failure)
        return Finished(taken.pending.server)

    async def _discover(self, server: McpServer) -> Discovered:
        http = httpx2.AsyncClient(
            transport=self._oauth.transport(server),
            trust_env=False,
            follow_redirects=False,
            timeout=REQUEST_SECONDS,
        )
        try:
            async with asyncio.timeout(_DISCOVERY_SECONDS), http:
                return await Discovery(http, trusted_origins(server)).of(server)
        except UNREACHABLE:
            raise AuthorizationServerUnavailable from None

    async def _complete(self, owner: Owner, taken: Taken, answer: Answer) -> None:
        pending = taken.pending
        # Whoever does not say who they are, though they said they would, is not heard at all.
        if not _is_from_the_issuer(pending, answer.issuer):
            raise OAuthIssuerMismatch
        if answer.error is not None or not answer.code:
            raise AuthorizationDenied
        server = await self._connections.find_server(owner, pending.server)
        if server is None or server.version != pending.server_version:
            raise AuthorizationOutdated
        tokens = await self._oauth.redeem(
            server,
            pending.grant,
            code=answer.code,
            verifier=pending.verifier,
            redirect_uri=pending.redirect_uri,
        )
        try:
            is_kept = await self._connections.keep_tokens(owner, server, tokens, taken.version)
        except UserUnavailable:  # nobody else would ever know of them
            await self._oauth.revoke(server, tokens)
            raise
        if not is_kept:
            await self._oauth.revoke(server, tokens)
            raise AuthorizationOutdated


def _pending(server: McpServer, found: Discovered, client: Client, redirect_uri: str) -> Pending:
    grant = Grant(
        issuer=found.issuer,
        token_endpoint=found.token_endpoint,
        client_id=client.client_id,
        auth_method=client.auth_method,
        resource=found.resource,
        scope=found.scope,
        revocation_endpoint=found.revocation_endpoint,
    )
    names_issuer = bool(found.metadata.authorization_response_iss_parameter_supported)
    return Pending(
        server.name, server.version, grant, names_issuer, redirect_uri, verifier=new_secret()
    )


def _is_from_the_issuer(pending: Pending, named: str | None) -> bool:
    if named is None:
        return not pending.names_issuer
    return issuers_match(named, pending.grant.issuer)
