"""The key-encryption keys: several, by id, so that they can be replaced one after the other."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from tenancy.vault.errors import MalformedKeys, WrappingKeyMissing

if TYPE_CHECKING:
    from collections.abc import Mapping

KEY_BYTES = 32
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


@dataclass(frozen=True, slots=True)
class WrappingKeys:
    """Keys that users' data keys are wrapped under. New ones are wrapped under ``newest``."""

    newest: str
    _keys: Mapping[str, bytes] = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``id:base64`` of 32 bytes each, comma-separated; the first one wraps.

        Raises:
            MalformedKeys: one of them is none. What stands there is not repeated.
        """
        keys: dict[str, bytes] = {}
        entries = text.split(",")
        for place, entry in enumerate(entries, 1):
            which = f"key {place} of {len(entries)}"
            key_id, separator, encoded = entry.strip().partition(":")
            if not separator or not _ID.fullmatch(key_id):
                raise MalformedKeys(
                    f"{which} must look like id:base64, the id of letters, digits, '.', '_', '-'"
                )
            key = _decoded(encoded, which)
            if key_id in keys:
                raise MalformedKeys(f"{which} has the id of an earlier one")
            if key in keys.values():
                raise MalformedKeys(f"{which} is the same key as an earlier one")
            keys[key_id] = key
        return cls(next(iter(keys)), keys)

    @property
    def ids(self) -> tuple[str, ...]:
        """Their ids, in the order in which they were given."""
        return tuple(self._keys)

    def of(self, key_id: str) -> bytes:
        """The key of an id.

        Raises:
            WrappingKeyMissing: there is none.
        """
        try:
            return self._keys[key_id]
        except KeyError:
            raise WrappingKeyMissing(key_id) from None


def _decoded(encoded: str, which: str) -> bytes:
    try:
        key = base64.b64decode(encoded.strip(), validate=True)
    except (binascii.Error, ValueError):
        raise MalformedKeys(f"{which} is not base64") from None
    if len(key) != KEY_BYTES:
        raise MalformedKeys(f"{which} must be {KEY_BYTES} bytes, not {len(key)}")
    return key
