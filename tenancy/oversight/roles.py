"""Whether the roles that an operator names are those that are meant.

One that may do more would see what people say; one that may do less would find nothing, for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenancy.database.roles import WrongRole, assert_role

if TYPE_CHECKING:
    from tenancy.database.calls import FunctionCalls
    from tenancy.database.engine import DatabaseSettings

_MAY_DISPATCH = "SELECT has_schema_privilege('dispatch', 'USAGE')"
_MAY_COUNT = "SELECT has_column_privilege('idempotency_keys', 'created_at', 'SELECT')"


async def assert_dispatch(settings: DatabaseSettings, calls: FunctionCalls) -> None:
    """Make sure that the role may look at the queues, and cannot read what people say.

    Raises:
        WrongRole: it may do more or less.
        WrongRevision: the database is not migrated to this version.
        DatabaseUnavailable: Postgres cannot be reached.
    """
    await assert_role(settings, reads_content=False)
    (row,) = await calls.fetch(_MAY_DISPATCH)
    if not row[0]:
        raise WrongRole(
            "The role of STOA_DISPATCH_DATABASE_URL may not look at the queues: it is another"
            " role's. Name the dispatch role."
        )


async def assert_maintenance(settings: DatabaseSettings, calls: FunctionCalls) -> None:
    """Make sure that the role may count, and cannot read what people say.

    Raises:
        WrongRole: it may do more or less.
        WrongRevision: the database is not migrated to this version.
        DatabaseUnavailable: Postgres cannot be reached.
    """
    await assert_role(settings, reads_content=False)
    (row,) = await calls.fetch(_MAY_COUNT)
    if not row[0]:
        raise WrongRole(
            "The role of STOA_MAINTENANCE_DATABASE_URL may not count: it is another role's."
            " Name the maintenance role."
        )
