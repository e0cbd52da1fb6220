"""What the gateway signs: assertions for the service, sessions and tokens for itself."""

from __future__ import annotations

import time
from enum import Enum
from typing import TYPE_CHECKING, Any

from joserfc import jwt
from joserfc.errors import JoseError

from app.dev.gateway.person import Person, UnusableName, read_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from joserfc.jwk import ECKey

_ALGORITHM = "ES256"
_ASSERTION_SECONDS = 300
_LARGEST_PASS = 4096


class PassKind(Enum):
    """How somebody comes back to the gateway. One kind is not accepted in place of another."""

    SESSION = "stoa-session+jwt"
    """A browser's cookie."""
    TOKEN = "stoa-access+jwt"  # noqa: S105
    """A program's bearer token."""

    @property
    def seconds(self) -> int:
        """How long it is good for."""
        return 14 * 24 * 3600 if self is PassKind.SESSION else 12 * 3600


class Signer:
    """Signs with the gateway's key, and recognises its own signature."""

    def __init__(
        self, key: ECKey, *, issuer: str, audience: str, now: Callable[[], float] = time.time
    ) -> None:
        self._key = key
        self._issuer = issuer
        self._audience = audience
        self._now = now

    @property
    def jwks(self) -> dict[str, Any]:
        """The public key, as the service fetches it."""
        return {"keys": [self._key.as_dict(private=False)]}

    def assertion(self, person: Person) -> str:
        """Say to the service who is asking. Made anew for each request."""
        claims = {
            "sub": person.name,
            "aud": self._audience,
            "name": person.name,
            "groups": person.groups,
        }
        if person.email is not None:
            claims["email"] = person.email
        return self._sign("JWT", claims, _ASSERTION_SECONDS)

    def issue(self, kind: PassKind, person: Person) -> str:
        """Return what lets this person in again."""
        claims = {"sub": person.name, "operator": person.operator}
        return self._sign(kind.value, claims, kind.seconds)

    def recognise(self, kind: PassKind, value: str) -> Person | None:
        """Return who was given this, or nothing if it isn't ours, isn't this kind, or is old."""
        if len(value) > _LARGEST_PASS or not value.isascii():
            return None
        registry = jwt.JWTClaimsRegistry(
            now=int(self._now()),
            iss={"essential": True, "value": self._issuer},
            exp={"essential": True},
        )
        try:
            token = jwt.decode(value, self._key, algorithms=[_ALGORITHM])
            if token.header.get("typ") != kind.value:
                return None
            registry.validate(token.claims)
            name = read_name(token.claims.get("sub"))
        except (JoseError, ValueError, TypeError, RecursionError, UnusableName):
            return None
        return Person(name, operator=token.claims.get("operator") is True)

    def _sign(self, typ: str, claims: dict[str, Any], seconds: int) -> str:
        now = int(self._now())
        return jwt.encode(
            {"alg": _ALGORITHM, "kid": self._key.kid, "typ": typ},
            {"iss": self._issuer, "iat": now, "exp": now + seconds, **claims},
            self._key,
        )
