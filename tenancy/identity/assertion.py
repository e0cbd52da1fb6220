"""Check an assertion's signature and its registered claims."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.util import urlsafe_b64decode

from tenancy.errors import IdentityRejected

if TYPE_CHECKING:
    from joserfc._rfc7515.model import JWSAlgModel
    from joserfc.jwk import Key

    from tenancy.identity.settings import JwtIdentitySettings

Claims: TypeAlias = dict[str, Any]

ALGORITHMS = frozenset(
    {
        *("ES256", "ES384", "ES512", "Ed25519", "EdDSA"),
        *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    }
)
"""Asymmetric only: with a shared secret, whoever can verify can also sign."""

_TYPES = frozenset({"jwt", "at+jwt"})
_LARGEST_HEADER = 4096
_LONGEST_KID = 255


class _AssertionRegistry(jws.JWSRegistry):
    """joserfc's checks, without its two that stand in the way of real issuers."""

    max_header_length = _LARGEST_HEADER

    def __init__(self) -> None:
        # Unknown header fields are to be ignored (RFC 7515, 4), unless ``crit`` names them.
        super().__init__(algorithms=ALGORITHMS, strict_check_header=False)

    def get_alg(self, name: str) -> JWSAlgModel:
        """Return the algorithm, without the deprecation warning of the name ``EdDSA``."""
        return self.algorithms[name]


_REGISTRY = _AssertionRegistry()


@dataclass(frozen=True, slots=True)
class JoseHeader:
    """What an assertion says about its own signature. Not trusted: it only picks the key."""

    algorithm: str
    kid: str


def read_header(token: str) -> JoseHeader:
    """Return the algorithm and the key id that a token names.

    Key material in the header (``jwk``, ``x5c``) or an address of it (``jku``, ``x5u``) is
    not looked at: a key counts only because the issuer publishes it.

    Raises:
        IdentityRejected: the header is malformed or asks for what we don't do.
    """
    segment = token.partition(".")[0].encode("ascii")
    if len(segment) > _LARGEST_HEADER:
        raise IdentityRejected
    try:
        header = json.loads(urlsafe_b64decode(segment))
    except (ValueError, RecursionError) as error:
        raise IdentityRejected from error
    # We understand no extension, so every ``crit`` names one that we don't.
    if not isinstance(header, dict) or "crit" in header or "b64" in header:
        raise IdentityRejected
    algorithm, kid = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise IdentityRejected
    if not isinstance(kid, str) or not 0 < len(kid) <= _LONGEST_KID:
        raise IdentityRejected
    if not _is_assertion_type(header.get("typ", "JWT")):
        raise IdentityRejected
    return JoseHeader(algorithm, kid)


def _is_assertion_type(typ: object) -> bool:
    """Issuers sign other things for the same audience, such as logout tokens."""
    return isinstance(typ, str) and typ.lower().removeprefix("application/") in _TYPES


def verify_signature(token: str, header: JoseHeader, keys: tuple[Key, ...]) -> Claims:
    """Return the claims of a token that one of the keys signed.

    Raises:
        IdentityRejected: none of them did.
    """
    key = next((key for key in keys if key.alg in (None, header.algorithm)), None)
    if key is None:
        raise IdentityRejected
    try:
        return jwt.decode(token, key, registry=_REGISTRY).claims
    except (JoseError, ValueError, RecursionError) as error:
        raise IdentityRejected from error


def check_claims(claims: Claims, settings: JwtIdentitySettings, now: float) -> None:
    """Check who issued the assertion, for whom, and for how long.

    Raises:
        IdentityRejected: one of the claims is missing or not as it must be.
    """
    registry = jwt.JWTClaimsRegistry(
        now=int(now),
        leeway=settings.leeway,
        iss={"essential": True, "value": settings.issuer},
        aud={"essential": True},
        sub={"essential": True},
        exp={"essential": True},
        iat={"essential": True},
    )
    try:
        registry.validate(claims)
    except JoseError as error:
        raise IdentityRejected from error
    # An assertion for us *and* others could be replayed to us by any of them.
    if claims["aud"] not in (settings.audience, [settings.audience]):
        raise IdentityRejected
    # Compared, not subtracted: numbers in a token may be too large for a float.
    if not claims["iat"] < claims["exp"] <= claims["iat"] + settings.longest_lifetime:
        raise IdentityRejected
