"""Which graph a thread's state is of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from app.agent.graphs import AGENT
from app.runs.threads import get_thread
from tenancy.tables import runs

if TYPE_CHECKING:
    from uuid import UUID

    from tenancy.database.tenant import TenantRead


async def graph_of(tx: TenantRead, thread_id: UUID) -> str:
    """The name of the graph of the thread's last run; the built-in one before any.

    Raises:
        ThreadNotFound: the user has no such thread.
    """
    await get_thread(tx, thread_id)
    last = (
        sa.select(runs.c.graph_id)
        .where(runs.c.thread_id == thread_id)
        .order_by(runs.c.created_at.desc(), runs.c.run_id)
        .limit(1)
    )
    return str(await tx.scalar(last) or AGENT)
