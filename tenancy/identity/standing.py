"""Whether somebody's account is on hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from tenancy.tables import users

if TYPE_CHECKING:
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner

_STATE = sa.select(users.c.state)


async def is_suspended(database: TenantDatabase, owner: Owner) -> bool:
    """Whether an operator has put somebody's account on hold.

    Raises:
        DatabaseUnavailable: Postgres cannot be reached.
    """
    async with database.reading(owner) as tx:
        return bool(await tx.scalar(_STATE) == "suspended")
