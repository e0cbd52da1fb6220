"""Deleting runs and threads, whatever they are doing, in the caller's transaction.

The caller announces what was open once it is committed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import UUID as PG_UUID

from tenancy.errors import RunNotFound, ThreadNotFound
from tenancy.run_states import OPEN, RunState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenancy.database.tenant import TenantWrite

LARGE_THREAD_ROWS = 5000
"""A thread with more events and checkpoint rows is gone at once too, but deleted in batches."""


def _call(function: str, *ids: str) -> sa.TextClause:
    given = [sa.bindparam(name, type_=PG_UUID) for name in ("user", *ids)]
    names = ", ".join(f":{each.key}" for each in given)
    return sa.text(function.format(names)).bindparams(*given)


_DELETE_RUN = _call("SELECT run_id, state FROM tenant.delete_run({})", "thread", "run")
_DELETE_THREAD = _call("SELECT run_id, state FROM tenant.delete_thread({}, :most)", "thread")


@dataclass(frozen=True, slots=True)
class Deleted:
    """The runs that were open when they, or their thread, were deleted."""

    running: tuple[UUID, ...]
    """Their workers are to be told: what they write from now on is refused."""
    queued: tuple[UUID, ...]
    """Waited for a worker, or for a person."""


def _deleted(rows: Sequence[sa.Row[Any]]) -> Deleted:
    was_open = [(row.run_id, RunState(row.state)) for row in rows if row.state in OPEN]
    return Deleted(
        running=tuple(run_id for run_id, state in was_open if state is RunState.RUNNING),
        queued=tuple(run_id for run_id, state in was_open if state is not RunState.RUNNING),
    )


async def delete_run(tx: TenantWrite, thread_id: UUID, run_id: UUID) -> Deleted:
    """Delete a run with its log. What it wrote to its thread stays, as far as it came.

    Raises:
        RunNotFound: the user has no such run on that thread.
    """
    ids = {"user": tx.user_id, "thread": thread_id, "run": run_id}
    rows = await tx.all(_DELETE_RUN, ids)
    if not rows:
        raise RunNotFound
    return _deleted(rows)


async def delete_thread(
    tx: TenantWrite, thread_id: UUID, *, large: int = LARGE_THREAD_ROWS
) -> Deleted:
    """Delete a thread with its runs, events and checkpoints.

    Of one with more than ``large`` rows nothing is seen any more either; its rows go later, in
    batches, and until then nothing can be made under its id.

    Raises:
        ThreadNotFound: the user has none with this id.
    """
    ids = {"user": tx.user_id, "thread": thread_id, "most": large}
    rows = await tx.all(_DELETE_THREAD, ids)
    if not rows:
        raise ThreadNotFound
    return _deleted(rows)
