"""How much a thread may hold. Each run of it reads, holds and stores the whole of it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import UUID as PG_UUID

from app.runs.sizes import is_large
from tenancy.errors import ThreadTooLarge

if TYPE_CHECKING:
    from uuid import UUID

    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner

MOST_BYTES = 16_000_000
"""A thread of more takes nothing large any more."""

# A state is read back from its channels' values, and where a channel is stored as deltas, from
# those since it was last stored whole. The lengths of all that are known without reading it. What
# is queued is read: it is less than the bound, or this was asked before it was accepted.
_SIZE = sa.text(
    """
    WITH RECURSIVE head AS (
      SELECT c.checkpoint_id, c.parent_checkpoint_id, c.checkpoint FROM checkpoints c
      WHERE c.user_id = :user AND c.thread_id = :thread AND c.checkpoint_ns = ''
      ORDER BY c.checkpoint_id DESC LIMIT 1
    ), link AS (
      SELECT v.key AS channel, h.checkpoint_id, h.parent_checkpoint_id, v.value AS version,
        NOT h.checkpoint -> 'channel_values' ? v.key AS is_delta
      FROM head h, jsonb_each_text(h.checkpoint -> 'channel_versions') v
      UNION ALL
      SELECT l.channel, c.checkpoint_id, c.parent_checkpoint_id,
        c.checkpoint -> 'channel_versions' ->> l.channel,
        NOT c.checkpoint -> 'channel_values' ? l.channel
      FROM link l JOIN checkpoints c
        ON c.user_id = :user AND c.thread_id = :thread AND c.checkpoint_ns = ''
        AND c.checkpoint_id = l.parent_checkpoint_id
      WHERE l.is_delta AND NOT EXISTS (
        SELECT FROM checkpoint_blobs b
        WHERE b.user_id = :user AND b.thread_id = :thread AND b.checkpoint_ns = ''
          AND b.channel = l.channel AND b.version = l.version
      )
    )
    SELECT
      coalesce((SELECT pg_column_size(head.checkpoint) FROM head), 0)
      + coalesce((
        SELECT sum(octet_length(b.blob)) FROM link l JOIN checkpoint_blobs b
          ON b.user_id = :user AND b.thread_id = :thread AND b.checkpoint_ns = ''
          AND b.channel = l.channel AND b.version = l.version
      ), 0)
      + coalesce((
        SELECT sum(octet_length(w.blob)) FROM link l JOIN checkpoint_writes w
          ON w.user_id = :user AND w.thread_id = :thread AND w.checkpoint_ns = ''
          AND w.checkpoint_id = l.checkpoint_id AND w.channel = l.channel
      ), 0)
      + coalesce((
        SELECT sum(octet_length(r.request::text)) FROM runs r
        WHERE r.user_id = :user AND r.thread_id = :thread AND r.state = 'pending'
      ), 0)
    """
).bindparams(sa.bindparam("user", type_=PG_UUID), sa.bindparam("thread", type_=PG_UUID))


async def require_room(
    database: TenantDatabase, owner: Owner, thread_id: UUID, given: object
) -> None:
    """See that a thread can take what is given to it. Something small it can, without asking.

    Raises:
        ThreadTooLarge: its newest state and what is queued for it are too large already.
    """
    if not is_large(given):
        return
    async with database.reading(owner) as tx:
        size = await tx.scalar(_SIZE, {"user": owner.user_id, "thread": thread_id})
    if size > MOST_BYTES:
        raise ThreadTooLarge
