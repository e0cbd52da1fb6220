"""What does not need a person: tokens renewed, tokens given back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import httpx2

from app.connections.oauth.client import Client, PublicAddress
from app.connections.oauth.endpoint import (
    UNREACHABLE,
    give_back,
    oauth_client,
    redeem_code,
    renew,
)
from app.connections.oauth.errors import AuthorizationLost, AuthorizationOutdated
from app.connections.oauth.reach import ANSWER_BYTES, REQUEST_SECONDS, trusted_origins
from app.connections.oauth.tokens import Grant, Tokens
from app.outbound import guarded_transport
from app.tools.servers import CredentialKind, HttpTransport, McpServer

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from authlib.integrations.httpx_client import AsyncOAuth2Client

_REVOCATION_SECONDS = 5.0

Transports = Callable[[frozenset[str]], httpx2.AsyncBaseTransport]
"""Makes what requests go through, given the origins that the operator vouches for."""


class OAuth:
    """Speaks to authorization servers, as the client that each of them knows."""

    def __init__(self, address: PublicAddress, transports: Transports | None = None) -> None:
        self.address = address
        self._transports = transports or _guarded

    async def refresh(self, server: McpServer, tokens: Tokens) -> Tokens:
        """Renew tokens. One attempt; the caller sees to it that it is the only one.

        Raises:
            AuthorizationLost: the person has to be asked again.
            AuthorizationServerUnavailable: nothing is known; the old tokens are all there is.
        """
        client = self._known_client(server, tokens.grant)
        if client is None or tokens.refresh_token is None:
            raise AuthorizationLost
        async with self.session(server, client) as oauth:
            return await renew(oauth, tokens)

    async def revoke(self, server: McpServer, tokens: Tokens) -> bool:
        """Give tokens back to whoever gave them, as well as it goes within a few seconds.

        The user's copy is gone by then: what fails here is nobody's failure. False where nobody
        has said that they have been taken.
        """
        client = self._known_client(server, tokens.grant)
        endpoint = tokens.grant.revocation_endpoint
        if client is None or endpoint is None:
            return False
        with suppress(*UNREACHABLE, ValueError):
            async with asyncio.timeout(_REVOCATION_SECONDS), self.session(server, client) as oauth:
                return await give_back(oauth, endpoint, tokens)
        return False

    async def redeem(
        self, server: McpServer, grant: Grant, *, code: str, verifier: str, redirect_uri: str
    ) -> Tokens:
        """Exchange a code for tokens.

        Raises:
            AuthorizationOutdated: it was given to a client that the service is not any more.
            AuthorizationFailed: the code is not taken, or what comes for it is not usable.
            AuthorizationServerUnavailable: there is no answer, or none that can be understood.
        """
        client = self._known_client(server, grant)
        if client is None:
            raise AuthorizationOutdated
        async with self.session(server, client) as oauth:
            return await redeem_code(
                oauth, grant, code=code, verifier=verifier, redirect_uri=redirect_uri
            )

    def session(
        self, server: McpServer, client: Client
    ) -> AbstractAsyncContextManager[AsyncOAuth2Client]:
        """The protocol's client for one server, for as long as a block."""
        return oauth_client(client, self.transport(server))

    def transport(self, server: McpServer) -> httpx2.AsyncBaseTransport:
        """What requests about one server go through."""
        return self._transports(trusted_origins(server))

    def _known_client(self, server: McpServer, grant: Grant) -> Client | None:
        """The client that a grant was given to; None where it is not ours any more."""
        rule = server.credential
        if not takes_authorization(server):
            return None
        known = rule.client_id or self.address.document_url
        secret = rule.client_secret if rule.client_id else None
        return Client(known, grant.auth_method, secret) if known == grant.client_id else None


def takes_authorization(server: McpServer) -> bool:
    """Whether a server is one that people authorize the service at."""
    is_remote = isinstance(server.transport, HttpTransport)
    return is_remote and server.credential.kind is CredentialKind.OAUTH


def _guarded(trusted: frozenset[str]) -> httpx2.AsyncBaseTransport:
    return guarded_transport(trusted=trusted, answer_bytes=ANSWER_BYTES, seconds=REQUEST_SECONDS)
