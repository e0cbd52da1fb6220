"""Under which verified identities a person is known, as their own rows say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from tenancy.tables import identities

if TYPE_CHECKING:
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner


async def identities_of(tenants: TenantDatabase, owner: Owner) -> list[str]:
    """A person's identities; none where they are gone.

    Raises:
        DatabaseUnavailable: Postgres cannot be reached.
    """
    async with tenants.reading(owner) as tx:
        rows = await tx.all(
            sa.select(identities.c.identity)
            .where(identities.c.user_id == owner.user_id)
            .order_by(identities.c.identity)
        )
    return [str(row[0]) for row in rows]
