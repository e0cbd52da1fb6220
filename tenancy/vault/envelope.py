"""Envelopes: AES-256-GCM, bound to whose value it is, what for, and which row's.

A sealed value is ``format (1) | data key's version (4) | nonce (12) | ciphertext and tag``; a
wrapped key is the same without a version, which its row names. Nonces are random: a key seals far
fewer than 2^32 values.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tenancy.vault.errors import VaultUnreadable
from tenancy.vault.keys import KEY_BYTES

if TYPE_CHECKING:
    from tenancy.principal import UserId

_FORMAT = 1
_NONCE_BYTES = 12
_HEADER = struct.Struct(">BI")
_VALUE = b"stoa vault value"
_KEY = b"stoa vault data key"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value belongs, and nowhere else opens."""

    user_id: UserId
    purpose: str
    """What kind of value it is."""
    field: str
    """Which one: the id of its row, and whatever else tells it from others there."""


def new_data_key() -> bytes:
    """A random key for one user's values."""
    return AESGCM.generate_key(KEY_BYTES * 8)


def seal(data_key: bytes, version: int, place: Place, plain: bytes) -> bytes:
    """Seal a value for its place."""
    header = _HEADER.pack(_FORMAT, version)
    return header + _encrypted(data_key, plain, _about(header, place))


def unseal(data_key: bytes, place: Place, sealed: bytes) -> bytes:
    """Open a sealed value.

    Raises:
        VaultUnreadable: it was sealed under another key or for another place, or was changed.
    """
    header = sealed[: _HEADER.size]
    return _decrypted(data_key, sealed[_HEADER.size :], _about(header, place))


def version_of(sealed: bytes) -> int:
    """The version of the data key that a value was sealed under.

    Raises:
        VaultUnreadable: it is no sealed value, or of a later format.
    """
    if len(sealed) < _HEADER.size:
        raise VaultUnreadable
    found, version = _HEADER.unpack_from(sealed)
    if found != _FORMAT:
        raise VaultUnreadable
    return int(version)


def wrap(wrapping_key: bytes, key_id: str, user_id: UserId, version: int, key: bytes) -> bytes:
    """Wrap a user's data key under a key-encryption key."""
    about = _wrapping(key_id, user_id, version)
    return bytes([_FORMAT]) + _encrypted(wrapping_key, key, about)


def unwrap(
    wrapping_key: bytes, key_id: str, user_id: UserId, version: int, wrapped: bytes
) -> bytes:
    """Open a wrapped data key.

    Raises:
        VaultUnreadable: it is another user's or version's, or was changed.
    """
    if wrapped[:1] != bytes([_FORMAT]):
        raise VaultUnreadable
    return _decrypted(wrapping_key, wrapped[1:], _wrapping(key_id, user_id, version))


def _about(header: bytes, place: Place) -> bytes:
    return _joined(
        _VALUE, header, place.user_id.bytes, place.purpose.encode(), place.field.encode()
    )


def _wrapping(key_id: str, user_id: UserId, version: int) -> bytes:
    return _joined(
        _KEY, bytes([_FORMAT]), user_id.bytes, version.to_bytes(4, "big"), key_id.encode()
    )


def _joined(*parts: bytes) -> bytes:
    """Parts with their lengths, so that no two lists of parts read the same."""
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def _encrypted(key: bytes, plain: bytes, about: bytes) -> bytes:
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, plain, about)


def _decrypted(key: bytes, sealed: bytes, about: bytes) -> bytes:
    try:
        return AESGCM(key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], about)
    except (InvalidTag, ValueError):  # too short to hold a nonce and a tag
        raise VaultUnreadable from None
