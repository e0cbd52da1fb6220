"""Keys as an operator writes them: several, by id, so that they can be replaced one by one."""

from __future__ import annotations

import base64
import binascii
import re

KEY_BYTES = 32
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


class MalformedKeys(ValueError):
    """The keys cannot be read; the message says which one, and quotes none."""


def parse_named_keys(text: str) -> dict[str, bytes]:
    """Read ``id:base64`` of 32 bytes each, comma-separated, in this order.

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
    return keys


def _decoded(encoded: str, which: str) -> bytes:
    try:
        key = base64.b64decode(encoded.strip(), validate=True)
    except (binascii.Error, ValueError):
        raise MalformedKeys(f"{which} is not base64") from None
    if len(key) != KEY_BYTES:
        raise MalformedKeys(f"{which} must be {KEY_BYTES} bytes, not {len(key)}")
    return key
