"""Users' data keys as they are stored: wrapped, by version. Read where used, kept by nobody."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner

_READ = "SELECT version, wrapping_key, wrapped FROM tenant.read_data_keys($1)"
_AGE = "SELECT tenant.data_key_age($1)"
_ADD = "SELECT version, wrapping_key, wrapped FROM tenant.add_data_key($1, $2, $3, $4)"
_REWRAP = "SELECT tenant.rewrap_data_key($1, $2, $3, $4, $5)"
_DROP_UNUSED = "SELECT tenant.drop_unused_data_keys($1)"
_DESTROY = "SELECT tenant.destroy_data_keys($1)"


@dataclass(frozen=True, slots=True)
class WrappedKey:
    """One version of a user's data key, under the key-encryption key of an id."""

    version: int
    wrapping_key: str
    wrapped: bytes = field(repr=False)


async def read_data_keys(database: TenantDatabase, owner: Owner) -> list[WrappedKey]:
    """A user's data keys, the newest first; none before there is anything to seal."""
    return [WrappedKey(*row) for row in await database.call(owner, _READ)]


async def data_key_age(database: TenantDatabase, owner: Owner) -> float | None:
    """How many seconds ago a user's newest data key was made; None if there is none."""
    (row,) = await database.call(owner, _AGE)
    age: float | None = row[0]
    return age


async def add_data_key(database: TenantDatabase, owner: Owner, key: WrappedKey) -> WrappedKey:
    """Store a data key unless its version is there already; return the newest.

    Two that make a version at once are given the same: the one that came first.
    """
    arguments = (key.version, key.wrapping_key, key.wrapped)
    (row,) = await database.call(owner, _ADD, *arguments)
    return WrappedKey(*row)


async def rewrap_data_key(
    database: TenantDatabase, owner: Owner, was: WrappedKey, key: WrappedKey
) -> bool:
    """Replace a wrapped key by the same one under another key; False if it was changed since.

    Also for somebody who is suspended.
    """
    arguments = (was.version, was.wrapped, key.wrapping_key, key.wrapped)
    (row,) = await database.call(owner, _REWRAP, *arguments)
    return bool(row[0])


async def drop_unused_data_keys(database: TenantDatabase, owner: Owner) -> int:
    """Delete older versions that nothing is sealed under any more; say how many are left."""
    (row,) = await database.call(owner, _DROP_UNUSED)
    return int(row[0])


async def destroy_data_keys(database: TenantDatabase, owner: Owner) -> int:
    """Make everything that was sealed for a user unreadable for ever; say how many keys there were.

    The first step of an erasure, and of nothing else.

    Raises:
        UserUnavailable: they are not being erased.
    """
    (row,) = await database.call(owner, _DESTROY)
    return int(row[0])
