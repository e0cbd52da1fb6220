"""What proves an erasure: a receipt that anybody can verify with the published keys.

It says what was deleted, how much is left of it (nothing), and what stays until when. It does not
say whose it was: whoever holds the receipt of an erasure knows that already.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.util import urlsafe_b64decode, urlsafe_b64encode

from app.erasure.errors import ReceiptRefused
from app.erasure.signing import ALGORITHM, REGISTRY, SigningKeys, required_keys
from tenancy.identity.keys import UnusableKeyDocument, parse_keys

if TYPE_CHECKING:
    from app.settings import Settings
    from tenancy.erasure.records import Erasure

KIND = "stoa-erasure-receipt+jwt"
"""The `typ` of a receipt: nothing else that is signed with the keys is taken for one."""
LARGEST_RECEIPT = 64 * 1024


@dataclass(frozen=True, slots=True)
class Receipts:
    """Makes receipts. Times in seconds."""

    keys: SigningKeys
    issuer: str | None
    tombstone_seconds: float
    audit_seconds: float | None
    """How long the record is kept; None: for good."""

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """As the settings say.

        Raises:
            ErasureNotConfigured: there are no keys to sign with.
        """
        return cls(
            keys=required_keys(settings),
            issuer=None if settings.public_url is None else str(settings.public_url).rstrip("/"),
            tombstone_seconds=settings.tombstone_seconds,
            audit_seconds=settings.audit_retention_seconds or None,
        )

    def sign(self, erasure: Erasure) -> str:
        """The receipt of an erasure that was verified, as a compact JWS."""
        claims = self._claims(erasure)
        return self.keys.sign(json.dumps(claims, sort_keys=True).encode(), KIND)

    def _claims(self, erasure: Erasure) -> dict[str, Any]:
        verified_at = erasure.verified_at
        assert verified_at is not None  # noqa: S101 - signing follows upon verifying
        claims: dict[str, Any] = {
            # No `iat`: libraries refuse one that is ahead of a clock that is late by a moment.
            "erasure_id": str(erasure.erasure_id),
            "requested_at": _moment(erasure.requested_at),
            "requested_by": erasure.requested_by,
            "verified_at": _moment(verified_at),
            "deleted": erasure.deleted,
            "remaining": erasure.remaining,
            "keys_destroyed": erasure.keys_destroyed,
            "tokens_revoked": erasure.tokens_revoked,
            "tokens_not_revoked": erasure.tokens_not_revoked,
            "folders_deleted": erasure.folders_deleted,
            "kept": self._kept(erasure.requested_at, verified_at),
        }
        return claims if self.issuer is None else {"iss": self.issuer, **claims}

    def _kept(self, requested_at: datetime, verified_at: datetime) -> list[dict[str, str | None]]:
        """What stays, and until when: a hash that nobody can undo, and facts that name nobody."""
        tombstone = requested_at + timedelta(seconds=self.tombstone_seconds)
        record = (
            None
            if self.audit_seconds is None
            else _moment(verified_at + timedelta(seconds=self.audit_seconds))
        )
        return [
            {"what": "tombstone", "until": _moment(tombstone)},
            {"what": "anonymous_record", "until": record},
        ]


def verify_receipt(receipt: str, published: bytes) -> dict[str, Any]:
    """What a receipt says, if one of the published keys (a JWKS document) has signed it.

    Raises:
        ReceiptRefused: it is none, was changed, or was signed with another key.
    """
    receipt = receipt.strip()
    if len(receipt) > LARGEST_RECEIPT or not receipt.isascii():
        raise ReceiptRefused("This is no receipt.")
    key_id = _key_id(receipt)
    try:
        keys = parse_keys(published).get(key_id, ())
    except UnusableKeyDocument:
        raise ReceiptRefused("The published keys cannot be used.") from None
    if not keys:
        raise ReceiptRefused("This receipt was signed with a key that is not published.")
    try:
        found = jws.deserialize_compact(receipt, keys[0], registry=REGISTRY)
        claims = json.loads(found.payload)
    except (JoseError, ValueError, RecursionError):
        raise ReceiptRefused from None
    if not isinstance(claims, dict):
        raise ReceiptRefused
    return claims


def _key_id(receipt: str) -> str:
    """The key that a receipt names. Its signature is checked to be written in one way only."""
    try:
        head, _, signature = receipt.split(".")
        header = json.loads(urlsafe_b64decode(head.encode()))
        written = urlsafe_b64encode(urlsafe_b64decode(signature.encode())).decode()
    except (ValueError, RecursionError):
        raise ReceiptRefused("This is no receipt.") from None
    if not isinstance(header, dict) or header.get("typ") != KIND or written != signature:
        raise ReceiptRefused("This is no receipt.")
    key_id = header.get("kid")
    if header.get("alg") != ALGORITHM or not isinstance(key_id, str):
        raise ReceiptRefused("This is no receipt.")
    return key_id


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
