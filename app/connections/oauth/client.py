"""Who Stoa is to an authorization server: registered beforehand, or described by a document."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mcp.client.auth.utils import issuers_match

from app.connections.oauth.errors import (
    OAuthClientRequired,
    OAuthIssuerMismatch,
    OAuthNotConfigured,
)
from app.connections.oauth.reach import trusted_origins
from app.outbound.urls import Origin

if TYPE_CHECKING:
    from mcp.shared.auth import OAuthMetadata

    from app.tools.servers import CredentialRule, McpServer

CALLBACK_PATH = "/connections/callback"
DOCUMENT_PATH = "/.well-known/oauth-client.json"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_DEFAULT_AUTH = ("client_secret_basic",)
"""What a server takes that does not say (RFC 8414)."""


@dataclass(frozen=True, slots=True)
class Client:
    """Stoa, as one authorization server knows it."""

    client_id: str
    auth_method: str
    secret: str | None = field(default=None, repr=False)


class PublicAddress:
    """Where people, and authorization servers, reach the service."""

    def __init__(self, url: str | None) -> None:
        self._base = None if url is None else url.rstrip("/")

    @property
    def callback(self) -> str:
        """Where the browser comes back to.

        Raises:
            OAuthNotConfigured: the operator has not said where the service is.
        """
        return f"{self._required()}{CALLBACK_PATH}"

    @property
    def document_url(self) -> str | None:
        """The client id that is the address of its own description; None where it cannot be.

        It has to be https; on loopback, where one tries things, it needn't.
        """
        parts = urlsplit(self._base or "")
        usable = parts.scheme == "https" or parts.hostname in _LOOPBACK
        return f"{self._base}{DOCUMENT_PATH}" if usable else None

    def document(self) -> dict[str, Any] | None:
        """The client id metadata document; None where there is none."""
        url = self.document_url
        if url is None:
            return None
        return {
            "client_id": url,
            "client_name": "Stoa",
            "client_uri": self._base,
            "redirect_uris": [self.callback],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "web",
        }

    def _required(self) -> str:
        if self._base is None:
            raise OAuthNotConfigured
        return self._base


def client_for(
    server: McpServer, issuer: str, metadata: OAuthMetadata, address: PublicAddress
) -> Client:
    """Choose as whom an authorization is begun.

    Raises:
        OAuthIssuerMismatch: the registered client is another issuer's.
        OAuthClientRequired: none is registered, and the issuer takes no document.
    """
    rule = server.credential
    if rule.client_id is not None:
        if not _knows_the_client(server, issuer):
            raise OAuthIssuerMismatch
        return registered(rule, _auth_method(rule, metadata))
    url = address.document_url
    if url is None or not metadata.client_id_metadata_document_supported:
        raise OAuthClientRequired
    return Client(url, "none")


def registered(rule: CredentialRule, auth_method: str) -> Client:
    """The client that the operator registered."""
    assert rule.client_id is not None  # noqa: S101 - the caller has looked
    return Client(rule.client_id, auth_method, rule.client_secret)


def _knows_the_client(server: McpServer, issuer: str) -> bool:
    """Whether a client's secret may go to this issuer: not to any that a server may name."""
    if server.credential.issuer is not None:
        return issuers_match(issuer, server.credential.issuer)
    return str(Origin.of(issuer)) in trusted_origins(server)


def _auth_method(rule: CredentialRule, metadata: OAuthMetadata) -> str:
    if rule.client_secret is None:
        return "none"
    offered = metadata.token_endpoint_auth_methods_supported or _DEFAULT_AUTH
    for method in ("client_secret_basic", "client_secret_post"):
        if method in offered:
            return method
    raise OAuthClientRequired
