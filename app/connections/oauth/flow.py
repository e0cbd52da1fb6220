"""The whole of an authorization: begun, finished, renewed, given back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import httpx2
from mcp.client.auth.utils import issuers_match

from app.connections.oauth.client import Client, PublicAddress, client_for
from app.connections.oauth.discovery import Discovered, Discovery
from app.connections.oauth.endpoint import UNREACHABLE, give_back, oauth_client, redeem_code, renew
from app.connections.oauth.errors import (
    AuthorizationDenied,
    AuthorizationLost,
    AuthorizationOutdated,
    AuthorizationServerUnavailable,
    OAuthIssuerMismatch,
    OAuthNotUsed,
)
from app.connections.oauth.pending import Pending, PendingAuthorizations, Sealing, new_secret
from app.connections.oauth.reach import ANSWER_BYTES, REQUEST_SECONDS, trusted_origins
from app.connections.oauth.tokens import Grant, Tokens
from app.outbound.mcp_client import guarded_httpx2_transport
from app.tools.servers import CredentialKind, HttpTransport, McpServer
from tenancy.errors import StoaError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from authlib.integrations.httpx_client import AsyncOAuth2Client

    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner

_DISCOVERY_SECONDS = 20.0
_REVOCATION_SECONDS = 5.0

Transports = Callable[[frozenset[str]], httpx2.AsyncBaseTransport]
"""Makes what requests go through, given the origins that the operator vouches for."""


class Connections(Protocol):
    """What is needed of a person's connections."""

    async def find_server(self, owner: Owner, name: str) -> McpServer | None:
        """One of the servers that the user has."""
        ...

    async def keep_tokens(
        self, owner: Owner, server: McpServer, tokens: Tokens, version: int
    ) -> bool:
        """Keep tokens as a connection's credential; False where it has another version now."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """What the browser brings back. All of it is somebody's text."""

    state: str
    code: str | None = None
    error: str | None = None
    issuer: str | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """What became of an authorization."""

    server: str | None
    """None where none of this user's was under way."""
    failure: StoaError | None = None


class OAuth:
    """Authorizations of people at MCP servers."""

    def __init__(
        self,
        database: TenantDatabase,
        vault: Sealing,
        connections: Connections,
        address: PublicAddress,
        transports: Transports | None = None,
    ) -> None:
        self._pending = PendingAuthorizations(database, vault)
        self._connections = connections
        self._address = address
        self._transports = transports or _guarded

    async def begin(self, owner: Owner, server: McpServer) -> str:
        """Return the address at which the person's browser asks them for their consent.

        Raises:
            OAuthNotUsed, OAuthNotConfigured, OAuthRefused: there is none to be had.
            VaultNotConfigured: nothing could be kept of it.
            AuthorizationServerUnavailable: somebody cannot be reached, or answers nonsense.
        """
        if not _takes_authorization(server):
            raise OAuthNotUsed
        redirect_uri = self._address.callback
        found = await self._discover(server)
        client = client_for(server, found.issuer, found.metadata, self._address)
        pending = _pending(server, found, client, redirect_uri)
        state = new_secret()
        async with self._client(server, client) as oauth:
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
        name = taken.pending.server
        try:
            server = await self._connections.find_server(owner, name)
            await self._complete(owner, server, taken.pending, taken.version, answer)
        except StoaError as failure:
            return Finished(name, failure)
        return Finished(name)

    async def refresh(self, server: McpServer, tokens: Tokens) -> Tokens:
        """Renew tokens. One attempt; the caller sees to it that it is the only one.

        Raises:
            AuthorizationLost: the person has to be asked again.
            AuthorizationServerUnavailable: nothing is known; the old tokens are all there is.
        """
        client = self._known_client(server, tokens.grant)
        if client is None or tokens.refresh_token is None:
            raise AuthorizationLost
        async with self._client(server, client) as oauth:
            return await renew(oauth, tokens)

    async def revoke(self, server: McpServer, tokens: Tokens) -> None:
        """Give tokens back to whoever gave them, as well as it goes within a few seconds.

        The user's copy is gone by then: what fails here is nobody's failure.
        """
        client = self._known_client(server, tokens.grant)
        endpoint = tokens.grant.revocation_endpoint
        if client is None or endpoint is None:
            return
        with suppress(*UNREACHABLE, ValueError):
            async with asyncio.timeout(_REVOCATION_SECONDS), self._client(server, client) as oauth:
                await give_back(oauth, endpoint, tokens)

    async def _discover(self, server: McpServer) -> Discovered:
        trusted = trusted_origins(server)
        http = httpx2.AsyncClient(
            transport=self._transports(trusted),
            trust_env=False,
            follow_redirects=False,
            timeout=REQUEST_SECONDS,
        )
        try:
            async with asyncio.timeout(_DISCOVERY_SECONDS), http:
                return await Discovery(http, trusted).of(server)
        except UNREACHABLE:
            raise AuthorizationServerUnavailable from None

    async def _complete(
        self,
        owner: Owner,
        server: McpServer | None,
        pending: Pending,
        version: int,
        answer: Answer,
    ) -> None:
        # Whoever does not say who they are, though they said they would, is not heard at all.
        if not _is_from_the_issuer(pending, answer.issuer):
            raise OAuthIssuerMismatch
        if answer.error is not None or not answer.code:
            raise AuthorizationDenied
        client = None if server is None else self._known_client(server, pending.grant)
        if server is None or client is None or server.version != pending.server_version:
            raise AuthorizationOutdated
        async with self._client(server, client) as oauth:
            tokens = await redeem_code(
                oauth,
                pending.grant,
                code=answer.code,
                verifier=pending.verifier,
                redirect_uri=pending.redirect_uri,
            )
        if not await self._connections.keep_tokens(owner, server, tokens, version):
            await self.revoke(server, tokens)
            raise AuthorizationOutdated

    def _known_client(self, server: McpServer, grant: Grant) -> Client | None:
        """The client that a grant was given to; None where it is not ours any more."""
        rule = server.credential
        if not _takes_authorization(server):
            return None
        known = rule.client_id or self._address.document_url
        secret = rule.client_secret if rule.client_id else None
        return Client(known, grant.auth_method, secret) if known == grant.client_id else None

    @asynccontextmanager
    async def _client(self, server: McpServer, client: Client) -> AsyncIterator[AsyncOAuth2Client]:
        transport = self._transports(trusted_origins(server))
        async with oauth_client(client, transport) as opened:
            yield opened


def _takes_authorization(server: McpServer) -> bool:
    is_remote = isinstance(server.transport, HttpTransport)
    return is_remote and server.credential.kind is CredentialKind.OAUTH


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


def _guarded(trusted: frozenset[str]) -> httpx2.AsyncBaseTransport:
    return guarded_httpx2_transport(
        trusted=trusted, answer_bytes=ANSWER_BYTES, seconds=REQUEST_SECONDS
    )
