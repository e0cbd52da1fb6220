"""How far a run's log reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from tenancy.tables import run_events, runs

if TYPE_CHECKING:
    from uuid import UUID

    from tenancy.database.tenant import TenantRead


async def last_seq(tx: TenantRead, run_id: UUID) -> int:
    """The number of the newest event that a run's log has held; 0 while it is empty."""
    newest = sa.select(sa.func.max(run_events.c.seq)).where(run_events.c.run_id == run_id)
    dropped = sa.select(runs.c.log_dropped_through).where(runs.c.run_id == run_id)
    either = sa.func.greatest(newest.scalar_subquery(), dropped.scalar_subquery())
    return int(await tx.scalar(sa.select(either)) or 0)
