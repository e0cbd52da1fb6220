"""Authorizations under way: kept for ten minutes, found by their user only, taken once."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Protocol

from app.connections.oauth.errors import AuthorizationNotFound, AuthorizationOutdated
from app.connections.oauth.tokens import Grant
from tenancy.authorizations import Begun, begin_authorization, take_authorization

if TYPE_CHECKING:
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner

_PURPOSE = "authorization"
_MOST_SEALINGS = 2


@dataclass(frozen=True, slots=True)
class Pending:
    """What has to be known again when the browser comes back."""

    server: str
    server_version: str
    """The configuration's: another one is another server."""
    grant: Grant
    names_issuer: bool
    """Whether the authorization server says in its answers who it is (RFC 9207)."""
    redirect_uri: str
    verifier: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Taken:
    """An authorization that was under way until now."""

    pending: Pending
    version: int
    """The connection's."""


class Sealing(Protocol):
    """What is needed of the vault."""

    async def seal(self, owner: Owner, purpose: str, field: str, plain: bytes) -> bytes:
        """Seal a value for one place of a user's."""
        ...

    async def open(self, owner: Owner, purpose: str, field: str, sealed: bytes) -> bytes:
        """Open a value of one place of a user's."""
        ...


class PendingAuthorizations:
    """Keeps them, sealed, under the hash of a state that only the browser has."""

    def __init__(self, database: TenantDatabase, vault: Sealing) -> None:
        self._database = database
        self._vault = vault

    async def keep(self, owner: Owner, state: str, pending: Pending, *, is_own: bool) -> None:
        """Put one under way.

        Raises:
            AuthorizationOutdated: the server was the user's own, and is not any more.
            VaultNotConfigured: nothing can be kept secret.
        """
        key = _hash(state)
        plain = json.dumps(asdict(pending)).encode()
        begun: Begun = "stale"
        # A data key goes at most once while somebody waits for their answer.
        for _ in range(_MOST_SEALINGS):
            sealed = await self._vault.seal(owner, _PURPOSE, key.hex(), plain)
            begun = await begin_authorization(
                self._database, owner, pending.server, key, sealed, is_own=is_own
            )
            if begun != "stale":
                break
        if begun != "kept":
            raise AuthorizationOutdated

    async def take(self, owner: Owner, state: str) -> Taken:
        """Take one, so that nobody can again.

        Raises:
            AuthorizationNotFound: none of this user's has this state, or it is too old.
        """
        key = _hash(state)
        row = await take_authorization(self._database, owner, key)
        if row is None:
            raise AuthorizationNotFound
        kept = json.loads(await self._vault.open(owner, _PURPOSE, key.hex(), row.sealed))
        return Taken(Pending(**{**kept, "grant": Grant(**kept["grant"])}), row.version)


def new_secret() -> str:
    """A state or a verifier: 256 bits that nobody guesses, fit for a URL."""
    return secrets.token_urlsafe(32)


def _hash(state: str) -> bytes:
    return hashlib.sha256(state.encode(errors="replace")).digest()
