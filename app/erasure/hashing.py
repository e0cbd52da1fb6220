"""Keyed hashes of who was here: nobody without a signing key can tell whose one is.

The keys of the hashes are derived from the signing keys (HKDF), one for each use: what is
published of a signing key says nothing about them, and no hash of one use is one of another.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from app.erasure.signing import signing_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from app.erasure.signing import SigningKeys
    from app.settings import Settings
    from tenancy.principal import UserId

_IDENTITY = b"stoa tombstone identity 1"
_USER = b"stoa tombstone user 1"
_KEY_BYTES = 32


class PersonHashes:
    """Hashes people under each of the signing keys; new tombstones are under the newest."""

    def __init__(self, keys: SigningKeys) -> None:
        self.newest = keys.newest
        self._of_identities = _derived(keys.seeds, _IDENTITY)
        self._of_users = _derived(keys.seeds, _USER)

    def identity_hashes(self, identity: str) -> list[bytes]:
        """A verified identity's hashes, one under each key: by which a tombstone is found."""
        return [_hash(key, identity.encode()) for key in self._of_identities.values()]

    def identity_hash(self, identity: str) -> bytes:
        """A verified identity's hash under the newest key."""
        return _hash(self._of_identities[self.newest], identity.encode())

    def user_hash(self, user_id: UserId, key_id: str | None = None) -> bytes:
        """A user's hash under a key, by default the newest.

        Raises:
            KeyError: there is no such key.
        """
        return _hash(self._of_users[key_id or self.newest], user_id.bytes)

    def has(self, key_id: str) -> bool:
        """Whether there is a key of this id."""
        return key_id in self._of_users


def identity_hashes(settings: Settings) -> Callable[[str], list[bytes]]:
    """By what a tombstone of an identity is found; by nothing where there are no keys."""
    keys = signing_keys(settings)
    return (lambda _identity: []) if keys is None else PersonHashes(keys).identity_hashes


def _derived(seeds: Mapping[str, bytes], use: bytes) -> dict[str, bytes]:
    return {
        key_id: HKDF(SHA256(), _KEY_BYTES, salt=None, info=use).derive(seed)
        for key_id, seed in seeds.items()
    }


def _hash(key: bytes, value: bytes) -> bytes:
    return hmac.digest(key, value, "sha256")
