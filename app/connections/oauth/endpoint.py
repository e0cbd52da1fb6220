"""The token and revocation endpoints, through authlib: one request each, bounded, no second try."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httpx2
from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import AsyncOAuth2Client

from app.connections.oauth.discovery import is_json
from app.connections.oauth.errors import (
    AuthorizationFailed,
    AuthorizationLost,
    AuthorizationServerUnavailable,
)
from app.connections.oauth.reach import REQUEST_SECONDS
from app.connections.oauth.tokens import Grant, Tokens, UnusableToken
from app.outbound.errors import OutboundError, UrlRefused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from app.connections.oauth.client import Client

_PASSING = frozenset({"temporarily_unavailable", "server_error", "slow_down"})
"""Errors that say nothing of the token."""
UNREACHABLE = (OutboundError, UrlRefused, httpx2.HTTPError, OSError, TimeoutError)
"""What asking somebody may raise who is not there, or answers what nobody understands."""
_NONSENSE = (*UNREACHABLE, ArithmeticError, LookupError, RecursionError, TypeError, ValueError)
"""The same, and what authlib raises on its way through JSON of other shapes than it expects."""


@asynccontextmanager
async def oauth_client(
    client: Client,
    transport: httpx2.AsyncBaseTransport,
    **more: Any,  # noqa: ANN401 - authlib's
) -> AsyncIterator[AsyncOAuth2Client]:
    """The protocol's client, as one authorization server knows it; ended with the block."""
    async with AsyncOAuth2Client(
        client.client_id,
        client.secret,
        token_endpoint_auth_method=client.auth_method,
        revocation_endpoint_auth_method=client.auth_method,
        code_challenge_method="S256",
        transport=transport,
        trust_env=False,
        follow_redirects=False,
        timeout=REQUEST_SECONDS,
        **more,
    ) as opened:
        for answer in ("access_token_response", "refresh_token_response"):
            opened.register_compliance_hook(answer, _json_only)
        yield opened


async def redeem_code(
    oauth: AsyncOAuth2Client, grant: Grant, *, code: str, verifier: str, redirect_uri: str
) -> Tokens:
    """Exchange a code for tokens.

    Raises:
        AuthorizationFailed: the code is not taken, or what comes for it is not usable.
        AuthorizationServerUnavailable: there is no answer, or none that can be understood.
    """
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            answer = await oauth.fetch_token(
                grant.token_endpoint,
                grant_type="authorization_code",
                code=code,
                code_verifier=verifier,
                redirect_uri=redirect_uri,
                resource=grant.resource,
            )
        return Tokens.given(grant, answer)
    except (OAuthError, UnusableToken):
        raise AuthorizationFailed from None
    except _NONSENSE:
        raise AuthorizationServerUnavailable from None


async def renew(oauth: AsyncOAuth2Client, tokens: Tokens) -> Tokens:
    """Exchange a refresh token for new tokens; where none comes with them, it stays.

    An answer that is lost may have used the old token up: the next attempt will be told so.

    Raises:
        AuthorizationLost: the refresh token is not taken any more.
        AuthorizationServerUnavailable: there is no answer, or none that can be understood.
    """
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            answer = await oauth.refresh_token(
                tokens.grant.token_endpoint,
                refresh_token=tokens.refresh_token,
                resource=tokens.grant.resource,
            )
        return Tokens.given(tokens.grant, answer)
    except OAuthError as error:
        if str(error.error) in _PASSING:
            raise AuthorizationServerUnavailable from None
        raise AuthorizationLost from None
    except UnusableToken:
        raise AuthorizationLost from None
    except _NONSENSE:
        raise AuthorizationServerUnavailable from None


async def give_back(oauth: AsyncOAuth2Client, endpoint: str, tokens: Tokens) -> bool:
    """Ask the authorization server to forget a person's tokens (RFC 7009); whether it has."""
    kinds = {"refresh_token": tokens.refresh_token, "access_token": tokens.access_token}
    answers = [
        await oauth.revoke_token(endpoint, token, kind)
        for kind, token in kinds.items()
        if token is not None
    ]
    return all(answer.status_code == HTTPStatus.OK for answer in answers)


def _json_only(response: httpx2.Response) -> httpx2.Response:
    if response.status_code in range(300, 400) or (
        response.status_code == HTTPStatus.OK and not is_json(response)
    ):
        raise httpx2.DecodingError("no JSON")
    return response
