"""Which conversations there are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from tenancy.errors import ThreadNotFound
from tenancy.tables import threads

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from tenancy.database.tenant import TenantRead


@dataclass(frozen=True, slots=True)
class Heading:
    """Which conversation it is. Times in UTC."""

    thread_id: UUID
    title: str | None
    created_at: datetime
    updated_at: datetime


_COLUMNS = (threads.c.thread_id, threads.c.title, threads.c.created_at, threads.c.updated_at)
_HEADINGS = sa.select(*_COLUMNS).where(threads.c.deleted_at.is_(None))


async def find_heading(tx: TenantRead, thread_id: UUID) -> Heading:
    """A thread's heading.

    Raises:
        ThreadNotFound: the user has no such thread.
    """
    row = await tx.first(_HEADINGS.where(threads.c.thread_id == thread_id))
    if row is None:
        raise ThreadNotFound
    return _heading(row)


async def next_headings(tx: TenantRead, after: Heading | None, most: int) -> list[Heading]:
    """Headings, the thread that was made first first; only those after one that is given."""
    query = _HEADINGS
    if after is not None:
        at, thread_id = threads.c.created_at, threads.c.thread_id
        query = query.where(at >= after.created_at).where(
            (at > after.created_at) | (thread_id < after.thread_id)
        )
    # An index has the newest first, and of those of one moment the lowest id; from its end on.
    query = query.order_by(threads.c.created_at, threads.c.thread_id.desc()).limit(most)
    return [_heading(row) for row in await tx.all(query)]


def _heading(row: sa.Row[Any]) -> Heading:
    at, changed = row.created_at.astimezone(UTC), row.updated_at.astimezone(UTC)
    return Heading(row.thread_id, row.title, at, changed)
