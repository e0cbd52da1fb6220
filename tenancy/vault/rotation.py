"""Replacing keys: data keys wrapped anew, and, where that is wanted, new data keys.

Each step is one transaction of one user's that changes nothing if somebody else was quicker. So it
can be stopped anywhere and begun again, and two at once do no harm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenancy.vault.data_keys import (
    data_key_age,
    drop_unused_data_keys,
    read_data_keys,
    rewrap_data_key,
)
from tenancy.vault.errors import VaultUnreadable
from tenancy.vault.places import CREDENTIAL, credential_field

if TYPE_CHECKING:
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner
    from tenancy.vault.vault import Vault

_OLDER = "SELECT * FROM tenant.read_older_credentials($1)"
_RESEAL = "SELECT tenant.reseal_credential($1, $2, $3, $4)"
_MOST_LOOKS = 5
"""At a user's credentials: what they change meanwhile is under the newest key by itself."""


@dataclass(frozen=True, slots=True)
class Rekeyed:
    """What was done for one user."""

    rewrapped: int = 0
    """Data keys that are under the newest key-encryption key now."""
    new_data_keys: int = 0
    resealed: int = 0
    """Credentials that are under the newest data key now."""
    left: int = 0
    """Older data keys that something is sealed under still."""


async def rekey(
    database: TenantDatabase, vault: Vault, owner: Owner, *, older_than_seconds: float | None
) -> Rekeyed:
    """Put a user's data keys under the newest key-encryption key.

    Where the newest data key is older than so many seconds, there is a new one afterwards, and
    their credentials are sealed under it.

    Raises:
        VaultNotConfigured: there are no keys.
        VaultUnreadable: a data key or a credential does not open.
        UserUnavailable: the user is being erased, or gone.
    """
    rewrapped = await _rewrap(database, vault, owner)
    new = await _renew(database, vault, owner, older_than_seconds)
    resealed = await _reseal(database, vault, owner)
    return Rekeyed(rewrapped, new, resealed, await drop_unused_data_keys(database, owner))


async def _rewrap(database: TenantDatabase, vault: Vault, owner: Owner) -> int:
    rewrapped = 0
    for key in await read_data_keys(database, owner):
        if key.wrapping_key != vault.keys.newest:
            anew = vault.rewrapped(owner.user_id, key)
            rewrapped += await rewrap_data_key(database, owner, key, anew)
    return rewrapped


async def _renew(
    database: TenantDatabase, vault: Vault, owner: Owner, older_than_seconds: float | None
) -> int:
    if older_than_seconds is None:
        return 0
    age = await data_key_age(database, owner)
    if age is None or age < older_than_seconds:
        return 0
    newest, *_ = await read_data_keys(database, owner)
    await vault.new_data_key(owner, newest.version + 1)
    return 1


async def _reseal(database: TenantDatabase, vault: Vault, owner: Owner) -> int:
    resealed = 0
    unreadable: VaultUnreadable | None = None
    for _ in range(_MOST_LOOKS):
        older = await database.call(owner, _OLDER)
        unreadable = None
        for connection_id, kind, was in older:
            field = credential_field(connection_id, kind)
            try:
                plain = await vault.open(owner, CREDENTIAL, field, was)
            except VaultUnreadable as error:
                unreadable = error  # unless somebody was quicker: the next look tells
                continue
            sealed = await vault.seal(owner, CREDENTIAL, field, plain)
            (row,) = await database.call(owner, _RESEAL, connection_id, was, sealed)
            resealed += bool(row[0])
        if not older:
            break
    if unreadable is not None:
        raise unreadable
    return resealed
