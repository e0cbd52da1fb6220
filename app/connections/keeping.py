"""Credentials on their way into the vault and out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenancy.vault import VaultUnreadable
from tenancy.vault.places import CREDENTIAL, credential_field

if TYPE_CHECKING:
    from uuid import UUID

    from app.connections.rows import ConnectionRows, SealedCredential, StoredKind
    from tenancy.principal import Owner
    from tenancy.vault import Vault

_MOST_SEALINGS = 3
"""A data key goes at most once while something is being sealed under it."""


class CredentialKeeper:
    """Seals a credential for its connection and its kind, and opens it there only."""

    def __init__(self, rows: ConnectionRows, vault: Vault) -> None:
        self._rows = rows
        self._vault = vault

    def assert_configured(self) -> None:
        """Make sure that there is something to keep credentials in.

        Raises:
            VaultNotConfigured: there is not.
        """
        self._vault.keys  # noqa: B018 - raises

    async def keep(
        self,
        owner: Owner,
        connection_id: UUID,
        kind: StoredKind,
        plain: bytes,
        *,
        expires_in: float | None = None,
        expected_version: int | None = None,
        refreshed: bool = False,
    ) -> bool:
        """Keep a credential; False where the connection is gone, or not of the expected version.

        With ``refreshed`` it stands for the same authorization as the one before it.

        Raises:
            VaultNotConfigured: the service has no keys.
            VaultUnreadable: the user's data key does not open.
        """
        for _ in range(_MOST_SEALINGS):
            field = credential_field(connection_id, kind)
            sealed = await self._vault.seal(owner, CREDENTIAL, field, plain)
            outcome = await self._rows.keep(
                owner,
                connection_id,
                kind,
                sealed,
                expires_in=expires_in,
                expected_version=expected_version,
                refreshed=refreshed,
            )
            if outcome != "reseal":
                return outcome == "kept"
        raise VaultUnreadable

    def opened(self, owner: Owner, credential: SealedCredential) -> bytes | None:
        """What is kept; None where nothing is.

        Raises:
            VaultNotConfigured: the service has no keys.
            VaultUnreadable: it does not open.
        """
        if credential.sealed is None or credential.kind is None:
            return None
        field = credential_field(credential.connection_id, credential.kind)
        return self._vault.open_with(owner, credential.keys, CREDENTIAL, field, credential.sealed)
