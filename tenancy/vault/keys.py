"""The key-encryption keys: several, by id, so that they can be replaced one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from tenancy.named_keys import KEY_BYTES as KEY_BYTES
from tenancy.named_keys import parse_named_keys
from tenancy.vault.errors import WrappingKeyMissing

if TYPE_CHECKING:
    from collections.abc import Mapping


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
        keys = parse_named_keys(text)
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
