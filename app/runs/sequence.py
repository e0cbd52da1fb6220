"""A thread's runs in the order in which they are executed: as they are due.

One that is scheduled is none of them before that, or those that come meanwhile would be missed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from app.runs.runs import get_run
from app.runs.threads import require_thread
from tenancy.run_states import OPEN, RunState
from tenancy.tables import runs

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from app.runs.runs import Run
    from tenancy.database.tenant import TenantRead


_IS_DUE = runs.c.due_at <= sa.select(sa.func.clock_timestamp()).scalar_subquery()


async def run_after(tx: TenantRead, thread_id: UUID, due_at: datetime | None) -> Run | None:
    """The run that was due next after a moment; the thread's first without one.

    Raises:
        ThreadNotFound: the user has no such thread.
    """
    await require_thread(tx, thread_id)
    later = sa.select(runs.c.run_id).where(runs.c.thread_id == thread_id, _IS_DUE)
    if due_at is not None:
        later = later.where(runs.c.due_at > due_at)
    run_id = await tx.scalar(later.order_by(runs.c.due_at).limit(1))
    return None if run_id is None else await get_run(tx, thread_id, run_id)


async def due_in(tx: TenantRead, thread_id: UUID) -> float | None:
    """In how many seconds the next of a thread's scheduled runs is due, if it has one."""
    waits = (runs.c.thread_id == thread_id) & (runs.c.state == RunState.PENDING.value)
    left = sa.extract("epoch", sa.func.min(runs.c.due_at) - sa.func.clock_timestamp())
    seconds = await tx.scalar(sa.select(left).where(waits, sa.not_(_IS_DUE)))
    return None if seconds is None else max(0.0, float(seconds))


async def last_ended(tx: TenantRead, thread_id: UUID) -> datetime | None:
    """When the newest run was due that has none before it which is still open.

    Raises:
        ThreadNotFound: the user has no such thread.
    """
    await require_thread(tx, thread_id)
    mine = runs.c.thread_id == thread_id
    is_open = runs.c.state.in_([state.value for state in OPEN])
    oldest_open = (
        sa.select(sa.func.min(runs.c.due_at)).where(mine, _IS_DUE, is_open).scalar_subquery()
    )
    ended = sa.select(sa.func.max(runs.c.due_at)).where(
        mine, _IS_DUE, sa.func.coalesce(runs.c.due_at < oldest_open, True)
    )
    found: datetime | None = await tx.scalar(ended)
    return found
