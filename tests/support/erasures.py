"""Erasures for tests: as the database has them, with the keys that they are proven by."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from app.erasure.signing import SigningKeys
from tenancy.erasure.records import Erasure
from tests.support.vaults import keys_of

VERIFIED = Erasure(
    erasure_id=UUID("0198c0de-0000-4000-8000-00000000e2a5"),
    user_id=None,
    requested_by="person",
    requested_at=datetime(2026, 11, 30, 12, tzinfo=UTC),
    step="sign",
    attempts=3,
    failure=None,
    keys_destroyed=1,
    tokens_revoked=2,
    tokens_not_revoked=1,
    folders_deleted=4,
    deleted={"messages": 1_000_000, "users": 1},
    remaining={"messages": 0, "users": 0},
    verified_at=datetime(2026, 11, 30, 12, 0, 30, tzinfo=UTC),
    ended_at=None,
    receipt=None,
)
"""One of which nothing is left, and that is to be signed."""


def signing_keys_of(*ids: str) -> SigningKeys:
    """Signing keys of these ids; the same id is the same key."""
    return SigningKeys.parse(keys_of(*ids))


def verified(**changes: object) -> Erasure:
    """One like it."""
    return replace(VERIFIED, **changes)  # type: ignore[arg-type]
