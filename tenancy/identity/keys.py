"""From an issuer's key document to the keys that may verify an assertion."""

from __future__ import annotations

import json
from typing import TypeAlias

from joserfc.errors import JoseError, SecurityWarning
from joserfc.jwk import ECKey, JWKRegistry, Key, OKPKey, RSAKey

PublicKeys: TypeAlias = dict[str, tuple[Key, ...]]
"""By ``kid``. Issuers publish one key twice, under two ``alg``, with the same ``kid``."""

_MOST_KEYS = 100
_LONGEST_KID = 255
_PRIVATE_MEMBERS = ("d", "k")
_RSA_BITS = range(2048, 8192 + 1)
_EC_CURVES = ("P-256", "P-384", "P-521")


class UnusableKeyDocument(Exception):
    """What the issuer published is no set of keys."""


def parse_keys(document: bytes) -> PublicKeys:
    """Return the usable public signing keys of a JWKS document.

    Keys of a kind we don't verify with, and broken ones, are skipped: an issuer that adds a
    post-quantum key tomorrow must not lock everybody out.

    Raises:
        UnusableKeyDocument: it isn't a JWKS, or holds no key we can use.
    """
    try:
        entries = json.loads(document)["keys"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UnusableKeyDocument("not a JWKS document") from error
    if not isinstance(entries, list) or len(entries) > _MOST_KEYS:
        raise UnusableKeyDocument("not a list of keys, or too long a list")
    keys: PublicKeys = {}
    for entry in entries:
        key = _usable_key(entry)
        if key is not None and key.kid is not None:
            keys[key.kid] = (*keys.get(key.kid, ()), key)
    if not keys:
        raise UnusableKeyDocument("no key that can verify an assertion")
    return keys


def _usable_key(entry: object) -> Key | None:
    if not isinstance(entry, dict) or not _is_named_public_signing_key(entry):
        return None
    try:
        key = JWKRegistry.import_key(entry)
        return key if _is_strong(key) else None
    except (JoseError, ValueError, TypeError, KeyError, AttributeError, SecurityWarning):
        # joserfc decodes the members of a foreign key as they come: anything may be wrong.
        # (It warns of short keys, which is an exception where warnings are errors.)
        return None


def _is_named_public_signing_key(entry: dict[str, object]) -> bool:
    kid = entry.get("kid")
    operations = entry.get("key_ops", ["verify"])
    return (
        isinstance(kid, str)
        and 0 < len(kid) <= _LONGEST_KID
        and entry.get("use", "sig") == "sig"
        and isinstance(operations, list)
        and "verify" in operations
        # Whoever publishes a private key has lost it: nothing it signs proves anything.
        and not any(member in entry for member in _PRIVATE_MEMBERS)
    )


def _is_strong(key: Key) -> bool:
    match key:
        case RSAKey():
            return key.public_key.key_size in _RSA_BITS
        case ECKey():
            return key.curve_name in _EC_CURVES
        case OKPKey():
            return key.curve_name == "Ed25519"
        case _:
            return False
