"""Which graph a thread's state is of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from app.agent.graphs import AGENT
from app.runs.threads import require_thread
from tenancy.tables import checkpoints, runs

if TYPE_CHECKING:
    from uuid import UUID

    from tenancy.database.tenant import TenantRead


async def graph_of(tx: TenantRead, thread_id: UUID) -> str:
    """The name of the graph that made the thread's newest state.

    Its run may be deleted: the state says it itself. Before there is any state, it is the graph of
    the thread's last run; before any run, the built-in one.

    Raises:
        ThreadNotFound: the user has no such thread.
    """
    await require_thread(tx, thread_id)
    made_by = checkpoints.c.metadata["graph_id"].astext
    of_state = (
        sa.select(made_by)
        .where(checkpoints.c.thread_id == thread_id, checkpoints.c.checkpoint_ns == "")
        .where(made_by.is_not(None))  # what repairs a thread does not say it
        .order_by(checkpoints.c.checkpoint_id.desc())
        .limit(1)
    )
    of_run = (
        sa.select(runs.c.graph_id)
        .where(runs.c.thread_id == thread_id)
        .order_by(runs.c.created_at.desc(), runs.c.run_id)
        .limit(1)
    )
    found = sa.func.coalesce(of_state.scalar_subquery(), of_run.scalar_subquery(), AGENT)
    return str(await tx.scalar(sa.select(found)))
