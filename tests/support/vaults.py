"""Vaults for tests, under keys of their own."""

from __future__ import annotations

import base64
import hashlib

from tenancy.database.tenant import TenantDatabase
from tenancy.vault import Vault, WrappingKeys


def keys_of(*ids: str) -> str:
    """Key-encryption keys of these ids as the setting has them; the same id is the same key."""
    return ",".join(
        f"{key_id}:{base64.b64encode(hashlib.sha256(key_id.encode()).digest()).decode()}"
        for key_id in ids
    )


def vault_of(database: TenantDatabase, *ids: str) -> Vault:
    """A vault with these keys; without any, one that nobody has set up."""
    return Vault(database, WrappingKeys.parse(keys_of(*ids)) if ids else None)
