"""The protocol itself, by authlib's server: code with PKCE, rotating refresh tokens, revocation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from authlib.oauth2 import AuthorizationServer, OAuth2Request
from authlib.oauth2.rfc6749 import InvalidGrantError, grants
from authlib.oauth2.rfc6749.errors import OAuth2Error
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from starlette.responses import JSONResponse, Response

from tests.support.oauth_server.behaviour import Behaviour
from tests.support.oauth_server.records import PERSON, Client, Code, Records, Token

_METHODS = ["none", "client_secret_basic", "client_secret_post"]


class InvalidTarget(OAuth2Error):  # type: ignore[misc] # authlib has no types
    """The token is wanted for something else than was consented to (RFC 8707)."""

    error = "invalid_target"


@dataclass
class Incoming:
    """A request as it came, read to its end."""

    method: str
    url: str
    headers: dict[str, str]
    query: dict[str, str]
    form: dict[str, str]


class _Request(OAuth2Request):  # type: ignore[misc] # as above
    def __init__(self, incoming: Incoming) -> None:
        # As behind a proxy that ends TLS: authlib serves nothing else.
        super().__init__(
            incoming.method, incoming.url.replace("http:", "https:", 1), headers=incoming.headers
        )
        self._incoming = incoming
        self.payload = BasicOAuth2Payload({**incoming.query, **incoming.form})

    @property
    def args(self) -> dict[str, str]:
        return self._incoming.query

    @property
    def form(self) -> dict[str, str]:
        return self._incoming.form


class Protocol(AuthorizationServer):  # type: ignore[misc] # as above
    """authlib's server over what it remembers."""

    def __init__(self, records: Records, behaviour: Behaviour) -> None:
        super().__init__()
        self.records = records
        self.behaviour = behaviour
        self.register_grant(_CodeGrant, [CodeChallenge(required=True)])
        self.register_grant(_RefreshGrant)
        self.register_endpoint(_Revocation)
        self.register_token_generator("default", self._token)

    def query_client(self, client_id: str) -> Client | None:
        return self.records.clients.get(client_id)

    def create_oauth2_request(self, request: Incoming | OAuth2Request) -> OAuth2Request:
        return request if isinstance(request, OAuth2Request) else _Request(request)

    def handle_response(self, status: int, body: Any, headers: Any) -> Response:
        if isinstance(body, dict):
            return JSONResponse(body, status, headers=dict(headers))
        return Response(body, status, headers=dict(headers))

    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
        """Nobody listens."""

    def save_token(self, token: dict[str, Any], request: OAuth2Request) -> None:
        before = request.refresh_token
        code = request.authorization_code
        self.records.tokens.append(
            Token(
                access_token=token["access_token"],
                refresh_token=token.get("refresh_token"),
                client_id=request.client.client_id,
                scope=token.get("scope", ""),
                resource=(before or code).resource,
                lifetime=self.behaviour.expires_in,
                family=before.family if before else uuid4().hex,
            )
        )
        token.update(self.behaviour.token)

    def _token(self, **about: Any) -> dict[str, Any]:
        token = {
            "token_type": "Bearer",
            "access_token": f"access-{uuid4().hex}",
            "scope": about["scope"] or "",
        }
        if self.behaviour.expires_in is not None:
            token["expires_in"] = self.behaviour.expires_in
        if about["include_refresh_token"]:
            token["refresh_token"] = f"refresh-{uuid4().hex}"
        return token


def _require_resource(request: OAuth2Request, consented: str | None) -> None:
    if request.payload.data.get("resource") != consented:
        raise InvalidTarget


class _CodeGrant(grants.AuthorizationCodeGrant):  # type: ignore[misc] # as above
    TOKEN_ENDPOINT_AUTH_METHODS = _METHODS

    def save_authorization_code(self, code: str, request: OAuth2Request) -> None:
        asked = request.payload.data
        self.server.records.codes[code] = Code(
            code=code,
            client_id=request.client.client_id,
            redirect_uri=request.payload.redirect_uri,
            scope=request.scope,
            resource=asked.get("resource"),
            code_challenge=asked.get("code_challenge"),
            code_challenge_method=asked.get("code_challenge_method"),
        )

    def query_authorization_code(self, code: str, client: Client) -> Code | None:
        found = self.server.records.codes.get(code)
        if found is None or found.client_id != client.client_id:
            return None
        _require_resource(self.request, found.resource)
        return found  # type: ignore[no-any-return] # as above

    def delete_authorization_code(self, authorization_code: Code) -> None:
        del self.server.records.codes[authorization_code.code]

    def authenticate_user(self, authorization_code: Code) -> str:
        return PERSON


class _RefreshGrant(grants.RefreshTokenGrant):  # type: ignore[misc] # as above
    TOKEN_ENDPOINT_AUTH_METHODS = _METHODS

    @property
    def INCLUDE_NEW_REFRESH_TOKEN(self) -> bool:  # noqa: N802 - authlib's name
        return bool(self.server.behaviour.rotates)

    def authenticate_refresh_token(self, refresh_token: str) -> Token | None:
        found = self.server.records.by_refresh(refresh_token)
        if found is None or found.is_revoked:
            return None
        if found.is_used:
            # Two have it, and one of them stole it.
            self.server.records.revoke_family(found.family)
            raise InvalidGrantError
        _require_resource(self.request, found.resource)
        return found  # type: ignore[no-any-return] # as above

    def authenticate_user(self, refresh_token: Token) -> str:
        return PERSON

    def revoke_old_credential(self, refresh_token: Token) -> None:
        refresh_token.is_used = self.server.behaviour.rotates


class _Revocation(RevocationEndpoint):  # type: ignore[misc] # as above
    CLIENT_AUTH_METHODS = _METHODS

    def query_token(self, token_string: str, token_type_hint: str | None) -> Token | None:
        records = self.server.records
        records.given_back.append(token_string)
        found: Token | None = records.by_refresh(token_string) or records.by_access(token_string)
        return found

    def revoke_token(self, token: Token, request: OAuth2Request) -> None:
        self.server.records.revoke_family(token.family)
