"""What the authorization server remembers: clients, codes and tokens, as authlib's models."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from authlib.oauth2.rfc6749 import AuthorizationCodeMixin, ClientMixin, TokenMixin

PERSON = "the person at the browser"


@dataclass
class Client(ClientMixin):  # type: ignore[misc] # authlib has no types
    """A client, registered or described by its document."""

    client_id: str
    redirect_uris: list[str]
    secret: str | None = None
    auth_method: str = "none"

    def get_client_id(self) -> str:
        return self.client_id

    def get_default_redirect_uri(self) -> str:
        return self.redirect_uris[0]

    def get_allowed_scope(self, scope: str | None) -> str:
        return scope or ""

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri in self.redirect_uris

    def check_client_secret(self, client_secret: str) -> bool:
        return self.secret == client_secret

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == self.auth_method

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in {"authorization_code", "refresh_token"}


@dataclass
class Code(AuthorizationCodeMixin):  # type: ignore[misc] # as above
    """A code that waits for being redeemed."""

    code: str
    client_id: str
    redirect_uri: str
    scope: str
    resource: str | None
    code_challenge: str | None
    code_challenge_method: str | None

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope


@dataclass
class Token(TokenMixin):  # type: ignore[misc] # as above
    """An access token and the refresh token that came with it."""

    access_token: str
    refresh_token: str | None
    client_id: str
    scope: str
    resource: str | None
    lifetime: int | None
    family: str
    given_at: float = field(default_factory=time.monotonic)
    is_revoked: bool = False
    is_dead: bool = False
    """Whether its access token is not taken any more, though nobody was told."""
    is_used: bool = False
    """Whether its refresh token was redeemed."""

    def check_client(self, client: Client) -> bool:
        return self.client_id == client.client_id

    def get_scope(self) -> str:
        return self.scope

    def get_expires_in(self) -> int:
        return self.lifetime or 0

    def is_good(self) -> bool:
        """Whether the MCP server takes it."""
        is_old = self.lifetime is not None and time.monotonic() > self.given_at + self.lifetime
        return not self.is_revoked and not self.is_dead and not is_old


@dataclass
class Records:
    """Everything, with what a test may look at."""

    clients: dict[str, Client] = field(default_factory=dict)
    codes: dict[str, Code] = field(default_factory=dict)
    tokens: list[Token] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    """What came to the token endpoint."""
    authorized: list[dict[str, Any]] = field(default_factory=list)
    """What came to the authorization endpoint."""
    given_back: list[str] = field(default_factory=list)
    """Tokens that were revoked by their client."""

    def by_access(self, access_token: str) -> Token | None:
        """The token of an access token."""
        return next((t for t in self.tokens if t.access_token == access_token), None)

    def by_refresh(self, refresh_token: str) -> Token | None:
        """The token of a refresh token."""
        return next((t for t in self.tokens if t.refresh_token == refresh_token), None)

    def revoke_family(self, family: str) -> None:
        """Take back everything that one consent led to."""
        for token in self.tokens:
            if token.family == family:
                token.is_revoked = True

    def revoke_all(self) -> None:
        """As if the person had taken back their consent there."""
        for token in self.tokens:
            token.is_revoked = True
