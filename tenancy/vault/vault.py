"""The vault: values that only open for their user, their purpose and their row.

A data key per user, made when it is first needed, wrapped under a key-encryption key that only the
environment has. Keys are read and unwrapped for each use and kept nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenancy.vault.data_keys import WrappedKey, add_data_key, read_data_keys
from tenancy.vault.envelope import Place, new_data_key, seal, unseal, unwrap, version_of, wrap
from tenancy.vault.errors import VaultNotConfigured, VaultUnreadable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner, UserId
    from tenancy.vault.keys import WrappingKeys


class Vault:
    """Seals and opens. Without keys it refuses both, and nothing else is the worse for it."""

    def __init__(self, database: TenantDatabase, keys: WrappingKeys | None) -> None:
        self._database = database
        self._keys = keys

    @property
    def keys(self) -> WrappingKeys:
        """The key-encryption keys.

        Raises:
            VaultNotConfigured: there are none.
        """
        if self._keys is None:
            raise VaultNotConfigured
        return self._keys

    async def seal(self, owner: Owner, purpose: str, field: str, plain: bytes) -> bytes:
        """Seal a value for one place of a user's, under their newest data key.

        Raises:
            VaultNotConfigured: the service has no keys.
            VaultUnreadable: the user's data key does not open.
            UserUnavailable: the user is suspended, being erased, or gone.
        """
        place = Place(owner.user_id, purpose, field)
        keys = await read_data_keys(self._database, owner)
        newest = keys[0] if keys else await self._first_key(owner)
        return seal(self._unwrapped(owner.user_id, newest), newest.version, place, plain)

    async def open(self, owner: Owner, purpose: str, field: str, sealed: bytes) -> bytes:
        """Open a value of one place of a user's.

        Raises:
            VaultNotConfigured: the service has no keys.
            WrappingKeyMissing: the service lacks the key-encryption key of an id.
            VaultUnreadable: it is another place's, was changed, or its data key is gone.
        """
        return self.open_with(
            owner, await read_data_keys(self._database, owner), purpose, field, sealed
        )

    def open_with(
        self, owner: Owner, keys: Sequence[WrappedKey], purpose: str, field: str, sealed: bytes
    ) -> bytes:
        """The same, where the user's data keys were read along with the value."""
        version = version_of(sealed)
        place = Place(owner.user_id, purpose, field)
        for key in keys:
            if key.version == version:
                return unseal(self._unwrapped(owner.user_id, key), place, sealed)
        raise VaultUnreadable

    async def new_data_key(self, owner: Owner, version: int) -> WrappedKey:
        """Make a version of a user's data key, wrapped under the newest key; return what stands.

        Raises:
            VaultNotConfigured: the service has no keys.
            UserUnavailable: the user is being erased, or gone.
        """
        key = self.wrapped(owner.user_id, version, new_data_key())
        return await add_data_key(self._database, owner, key)

    def rewrapped(self, user_id: UserId, key: WrappedKey) -> WrappedKey:
        """The same data key under the newest key-encryption key.

        Raises:
            VaultNotConfigured: the service has no keys.
            VaultUnreadable: it does not open.
        """
        return self.wrapped(user_id, key.version, self._unwrapped(user_id, key))

    def wrapped(self, user_id: UserId, version: int, data_key: bytes) -> WrappedKey:
        """A data key as it is stored."""
        key_id = self.keys.newest
        sealed = wrap(self.keys.of(key_id), key_id, user_id, version, data_key)
        return WrappedKey(version, key_id, sealed)

    async def _first_key(self, owner: Owner) -> WrappedKey:
        self.keys  # noqa: B018 - raises before anything is written
        return await self.new_data_key(owner, 1)

    def _unwrapped(self, user_id: UserId, key: WrappedKey) -> bytes:
        wrapping_key = self.keys.of(key.wrapping_key)
        return unwrap(wrapping_key, key.wrapping_key, user_id, key.version, key.wrapped)
