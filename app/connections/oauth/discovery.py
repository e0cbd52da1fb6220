"""Finding out how one MCP server is authorized: RFC 9728, then RFC 8414 or OpenID Connect.

Where to look, and what the documents may say, is known by ``mcp``; what of it is believed is
decided here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httpx2
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    extract_resource_metadata_from_www_auth,
    extract_scope_from_www_auth,
    issuers_match,
)
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
from mcp.shared.auth_utils import check_resource_allowed
from mcp_types import LATEST_PROTOCOL_VERSION
from pydantic import ValidationError

from app.connections.oauth.errors import (
    AuthorizationServerUnavailable,
    OAuthIssuerMismatch,
    OAuthNotOffered,
    OAuthPkceRequired,
    OAuthRefused,
    OAuthResourceMismatch,
)
from app.connections.oauth.reach import check_address
from app.tools.servers import HttpTransport

if TYPE_CHECKING:
    from collections.abc import Iterable

    from app.tools.servers import McpServer

_VERSION = {"MCP-Protocol-Version": LATEST_PROTOCOL_VERSION}
_PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
_MOST_SCOPE = 1000


@dataclass(frozen=True, slots=True)
class Discovered:
    """How a server is authorized."""

    resource: str
    """What the server calls itself: tokens are asked for it and for nothing else."""
    issuer: str
    metadata: OAuthMetadata
    scope: str | None

    @property
    def authorization_endpoint(self) -> str:
        """Where the person's browser goes."""
        return str(self.metadata.authorization_endpoint)

    @property
    def token_endpoint(self) -> str:
        """Where codes and refresh tokens are redeemed."""
        return str(self.metadata.token_endpoint)

    @property
    def revocation_endpoint(self) -> str | None:
        """Where tokens are given back."""
        endpoint = self.metadata.revocation_endpoint
        return None if endpoint is None else str(endpoint)


class Discovery:
    """Asks a server, and the authorization server that it names, how it is authorized."""

    def __init__(self, http: httpx2.AsyncClient, vouched: frozenset[str]) -> None:
        self._http = http
        self._vouched = vouched

    async def of(self, server: McpServer) -> Discovered:
        """How a server is authorized.

        Raises:
            OAuthRefused: not at all, or not in a way that is accepted.
            AuthorizationServerUnavailable: somebody cannot be reached, or answers nonsense.
        """
        assert isinstance(server.transport, HttpTransport)  # noqa: S101 - the caller has looked
        described, challenged_scope = await self._challenge(server.transport)
        raw, resource = await self._resource(described, server.transport.url)
        issuer, metadata = await self._authorization_server(raw["authorization_servers"][0])
        scope = _scope(server.credential.scopes, challenged_scope, resource, metadata)
        return Discovered(raw["resource"], issuer, metadata, scope)

    async def _challenge(self, transport: HttpTransport) -> tuple[str | None, str | None]:
        """What a server says to whoever has no token: where it is described, for what scope."""
        check_address(transport.url, self._vouched)
        given = {n: v for n, v in transport.headers.items() if n.lower() != "authorization"}
        headers = {**given, **_VERSION, "Accept": "application/json, text/event-stream"}
        asking = self._http.stream("POST", transport.url, json=_PING, headers=headers)
        async with asking as response:
            return (
                extract_resource_metadata_from_www_auth(response),
                extract_scope_from_www_auth(response),
            )

    async def _resource(
        self, described: str | None, url: str
    ) -> tuple[dict[str, Any], ProtectedResourceMetadata]:
        """What the server says of itself; the document, and what it means."""
        raw = await self._first(build_protected_resource_metadata_discovery_urls(described, url))
        try:
            metadata = ProtectedResourceMetadata.model_validate(raw)
        except ValidationError:
            raise OAuthRefused from None
        if not check_resource_allowed(url, raw["resource"]):
            raise OAuthResourceMismatch
        return raw, metadata

    async def _authorization_server(self, issuer: str) -> tuple[str, OAuthMetadata]:
        """What an issuer says of itself, and its own name letter by letter."""
        check_address(issuer, self._vouched)
        raw = await self._first(
            build_oauth_authorization_server_metadata_discovery_urls(issuer, issuer)
        )
        named = raw.get("issuer")
        if not isinstance(named, str) or not issuers_match(named, issuer):
            raise OAuthIssuerMismatch
        try:
            metadata = OAuthMetadata.model_validate(raw)
        except ValidationError:
            raise OAuthRefused from None
        _require_codes_with_pkce(metadata)
        for endpoint in (
            *(metadata.authorization_endpoint, metadata.token_endpoint),
            *filter(None, [metadata.revocation_endpoint]),
        ):
            check_address(str(endpoint), self._vouched)
        return named, metadata

    async def _first(self, places: Iterable[str]) -> dict[str, Any]:
        """The first JSON object that is at one of the places."""
        for place in dict.fromkeys(places):
            found = await self._document(check_address(place, self._vouched))
            if found is not None:
                return found
        raise OAuthNotOffered

    async def _document(self, url: str) -> dict[str, Any] | None:
        """A JSON object, or None where there is nothing; a redirect is nothing."""
        response = await self._http.get(url, headers={"Accept": "application/json", **_VERSION})
        if response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise AuthorizationServerUnavailable
        if response.status_code != HTTPStatus.OK or not is_json(response):
            return None
        try:
            found = json.loads(response.content)
        except (ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None


def is_json(response: httpx2.Response) -> bool:
    """Whether an answer says that it is JSON."""
    media_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    return media_type == "application/json" or media_type.endswith("+json")


def _require_codes_with_pkce(metadata: OAuthMetadata) -> None:
    grants = metadata.grant_types_supported
    if "code" not in metadata.response_types_supported or (
        grants is not None and "authorization_code" not in grants
    ):
        raise OAuthRefused
    if "S256" not in (metadata.code_challenge_methods_supported or ()):
        raise OAuthPkceRequired


def _scope(
    operators: tuple[str, ...],
    challenged: str | None,
    resource: ProtectedResourceMetadata,
    metadata: OAuthMetadata,
) -> str | None:
    """What is asked for: as the operator says, else what the server says is needed.

    ``offline_access`` is added where the authorization server knows it: it is what makes some
    give a refresh token.
    """
    if operators:
        return " ".join(operators)
    wanted = (challenged or "").split() or list(resource.scopes_supported or ())
    if wanted and "offline_access" in (metadata.scopes_supported or ()):
        wanted.append("offline_access")
    scope = " ".join(dict.fromkeys(wanted))
    if len(scope) > _MOST_SCOPE or not scope.isascii() or not (scope or "x").isprintable():
        raise OAuthRefused
    return scope or None
