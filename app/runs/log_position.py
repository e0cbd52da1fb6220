"""How far a run's log reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from tenancy.tables import run_events

if TYPE_CHECKING:
    from uuid import UUID

    from tenancy.database.tenant import TenantRead


async def last_seq(tx: TenantRead, run_id: UUID) -> int:
    """The number of the newest event that a run's log holds; 0 while it is empty."""
    newest = sa.select(sa.func.max(run_events.c.seq)).where(run_events.c.run_id == run_id)
    return int(await tx.scalar(newest) or 0)
