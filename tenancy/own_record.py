"""What was done with one's own account, by whom, with what one wrote oneself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner

_READ = "SELECT * FROM tenant.read_own_record($1, $2, $3)"


async def read_own_record(
    database: TenantDatabase, owner: Owner, before: int | None, limit: int
) -> list[dict[str, Any]]:
    """Up to ``limit`` entries, the newest first, of those numbered below ``before``.

    Raises:
        DatabaseUnavailable: Postgres cannot be reached.
    """
    return [dict(row.items()) for row in await database.call(owner, _READ, before, limit)]
