"""What an ``Idempotency-Key`` has made before, for what is written in a transaction of Python's."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import UUID as PG_UUID

from tenancy.errors import IdempotencyConflict
from tenancy.tables import idempotency_keys

if TYPE_CHECKING:
    from app.runs.runs import IdempotencyKey
    from tenancy.database.tenant import TenantRead, TenantWrite

_TAKE = sa.text(
    "SELECT tenant.take_idempotency_key(:user, :route, :key, :fingerprint, :resource)"
).bindparams(
    sa.bindparam("user", type_=PG_UUID),
    sa.bindparam("route", type_=sa.Text),
    sa.bindparam("key", type_=sa.Text),
    sa.bindparam("fingerprint", type_=sa.LargeBinary),
    sa.bindparam("resource", type_=PG_UUID),
)


async def take_key(tx: TenantWrite, key: IdempotencyKey, candidate: UUID) -> UUID:
    """Return what the key stands for; from now on the candidate, if the key is new.

    Whoever comes with the same key at the same time waits for this transaction.

    Raises:
        IdempotencyConflict: the key came with another request before.
    """
    given = {"route": key.route, "key": key.key, "fingerprint": key.fingerprint}
    taken: UUID = await tx.scalar(_TAKE, {"user": tx.user_id, "resource": candidate, **given})
    return taken


async def made_before(tx: TenantRead, key: IdempotencyKey) -> UUID | None:
    """What the key stands for already; None if it is new, or was used too long ago to count.

    Raises:
        IdempotencyConflict: the key came with another request before.
    """
    row = await tx.first(
        sa.select(idempotency_keys.c.fingerprint, idempotency_keys.c.resource_id).where(
            idempotency_keys.c.user_id == tx.user_id,
            idempotency_keys.c.route == key.route,
            idempotency_keys.c.key == key.key,
            idempotency_keys.c.created_at
            > sa.select(sa.func.clock_timestamp()).scalar_subquery() - timedelta(hours=24),
        )
    )
    if row is None:
        return None
    if row.fingerprint != key.fingerprint:
        raise IdempotencyConflict
    return UUID(str(row.resource_id))
