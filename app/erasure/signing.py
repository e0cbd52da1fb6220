"""The keys that receipts are signed with: Ed25519, several by id, the public halves published."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from joserfc import jws
from joserfc.jwk import OKPKey
from joserfc.util import urlsafe_b64encode

from app.erasure.errors import ErasureNotConfigured
from tenancy.named_keys import parse_named_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from joserfc._rfc7515.model import JWSAlgModel

    from app.settings import Settings

ALGORITHM = "EdDSA"
"""Under this name libraries know Ed25519; under its own (RFC 9864) only new ones do."""


class ReceiptRegistry(jws.JWSRegistry):
    """joserfc's checks, for one algorithm only."""

    def __init__(self) -> None:
        super().__init__(algorithms=[ALGORITHM])

    def get_alg(self, name: str) -> JWSAlgModel:
        """Return the algorithm, without the deprecation warning of the name ``EdDSA``."""
        if name != ALGORITHM:
            return super().get_alg(name)
        return self.algorithms[name]


REGISTRY = ReceiptRegistry()


@dataclass(frozen=True, slots=True)
class SigningKeys:
    """Keys of the operator's. What is signed now is signed with ``newest``."""

    newest: str
    _seeds: Mapping[str, bytes] = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``id:base64`` of 32 bytes each, comma-separated; the first one signs.

        Raises:
            MalformedKeys: one of them is none. What stands there is not repeated.
        """
        seeds = parse_named_keys(text)
        return cls(next(iter(seeds)), seeds)

    @property
    def seeds(self) -> Mapping[str, bytes]:
        """Their secret halves by id, in the order in which they were given."""
        return self._seeds

    def published(self) -> dict[str, list[dict[str, str]]]:
        """The public halves, as a set of keys that any JOSE library reads (RFC 7517)."""
        return {
            "keys": [
                {
                    **_public(seed),
                    "kid": key_id,
                    "use": "sig",
                    "alg": ALGORITHM,
                }
                for key_id, seed in self._seeds.items()
            ]
        }

    def sign(self, payload: bytes, kind: str) -> str:
        """Sign with the newest key: a compact JWS (RFC 7515) of type ``kind``."""
        seed = self._seeds[self.newest]
        key = OKPKey.import_key({**_public(seed), "d": urlsafe_b64encode(seed).decode()})
        header = {"alg": ALGORITHM, "kid": self.newest, "typ": kind}
        return jws.serialize_compact(header, payload, key, registry=REGISTRY)


def signing_keys(settings: Settings) -> SigningKeys | None:
    """The keys of the settings; None where there are none."""
    keys = settings.signing_keys
    return None if keys is None else SigningKeys.parse(keys.get_secret_value())


def required_keys(settings: Settings) -> SigningKeys:
    """The keys of the settings.

    Raises:
        ErasureNotConfigured: there are none.
    """
    keys = signing_keys(settings)
    if keys is None:
        raise ErasureNotConfigured
    return keys


def _public(seed: bytes) -> dict[str, str]:
    public = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
    return {"kty": "OKP", "crv": "Ed25519", "x": urlsafe_b64encode(public).decode()}
