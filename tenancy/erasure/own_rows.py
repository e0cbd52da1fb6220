"""A person's rows, as an erasure deletes them: bound to them, so that nobody else's are touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner, UserId

_COUNT_KEYS = "SELECT count(*) FROM tenant.read_data_keys($1)"
_DESTROY_KEYS = "SELECT tenant.destroy_data_keys($1)"
_ERASE_ROWS = "SELECT after FROM tenant.erase_rows($1, $2, $3)"
_ERASE_USER = "SELECT tenant.erase_user($1)"


class OwnRows:
    """Deletes for people who are being erased, and for nobody else.

    Each method is a transaction of its own.
    """

    def __init__(self, tenants: TenantDatabase) -> None:
        self._tenants = tenants
        self._after: dict[UserId, list[str]] = {}
        """The last row that was deleted: the next batch need not pass by all that went before."""

    async def count_keys(self, owner: Owner) -> int:
        """How many keys a person's secrets are sealed under.

        Raises:
            DatabaseUnavailable: Postgres cannot be reached.
        """
        (row,) = await self._tenants.call(owner, _COUNT_KEYS)
        return int(row[0])

    async def destroy_keys(self, owner: Owner) -> int:
        """Delete the keys that a person's secrets are sealed under; say how many there were.

        Raises:
            UserUnavailable: the person is not being erased.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        (row,) = await self._tenants.call(owner, _DESTROY_KEYS)
        return int(row[0])

    async def delete(self, owner: Owner, most: int) -> bool:
        """Delete up to so many rows; False once there are none but the person's own.

        Raises:
            UserUnavailable: the person is not being erased, or gone already.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        after = self._after.pop(owner.user_id, None)
        rows = await self._tenants.call(owner, _ERASE_ROWS, most, after)
        for (last,) in rows:
            self._after[owner.user_id] = last
        return bool(rows)

    def forget(self, owner: Owner) -> None:
        """Begin at the beginning next time; others may be at it until then."""
        self._after.pop(owner.user_id, None)

    async def delete_user(self, owner: Owner) -> bool:
        """Delete the last row of all; False where something has come to refer to it meanwhile.

        Raises:
            DatabaseUnavailable: Postgres cannot be reached.
        """
        (row,) = await self._tenants.call(owner, _ERASE_USER)
        return bool(row[0])
