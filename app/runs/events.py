"""The stored log of a run's stream: bytes, numbered from 1 without gaps.

The worker writes it through functions that carry the fence; readers read it tenant-bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, UUID

from app.runs.states import RunState
from tenancy.tables import run_events, runs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID as UUIDValue

    from tenancy.database.crossing import ClaimedRun
    from tenancy.database.tenant import TenantDatabase, TenantRead

READ_LIMIT = 200
"""Events read at once: bounds what one reader holds in memory."""


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a run's stream: frozen when it was emitted, never changed since."""

    event: str
    data: bytes


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event with its place in the log."""

    seq: int
    event: str
    data: bytes


@dataclass(frozen=True, slots=True)
class LogPage:
    """What a reader finds after a position, and how the run stands in the same snapshot.

    When ``state`` is settled and ``events`` is shorter than the limit, there is nothing more.
    """

    events: tuple[StoredEvent, ...]
    state: RunState
    error_code: str | None
    error_message: str | None


def _function(sql: str) -> sa.TextClause:
    return sa.text(sql).bindparams(
        sa.bindparam("user", type_=UUID),
        sa.bindparam("run", type_=UUID),
        sa.bindparam("events", type_=ARRAY(sa.Text)),
        sa.bindparam("data", type_=ARRAY(sa.LargeBinary)),
    )


_APPEND = _function("SELECT tenant.append_events(:user, :run, :fence, :seq, :events, :data)")
_SETTLE = _function(
    "SELECT tenant.settle_run(:user, :run, :fence, CAST(:state AS run_state),"
    " :error_code, :error_message, :seq, :events, :data)"
)


def _rows(events: Sequence[Event]) -> dict[str, Any]:
    return {"events": [e.event for e in events], "data": [e.data for e in events]}


async def append_events(
    database: TenantDatabase, run: ClaimedRun, first_seq: int, events: Sequence[Event]
) -> None:
    """Append a flush of events to the log, if the run is still this worker's.

    Raises:
        LeaseLost: it is not; nothing was written.
    """
    params = {"run": run.run_id, "fence": run.fence, "seq": first_seq, **_rows(events)}
    await database.call(run, _APPEND, params)


async def settle_run(  # noqa: PLR0913 - the outcome and the last events commit together
    database: TenantDatabase,
    run: ClaimedRun,
    state: RunState,
    first_seq: int,
    events: Sequence[Event],
    *,
    error_code: str | None = None,
    error_message: str | None = None,
) -> None:
    """End a run: its last events and its outcome, in one transaction.

    Raises:
        LeaseLost: the run is another worker's, or gone; nothing was written.
    """
    params = {
        "run": run.run_id,
        "fence": run.fence,
        "state": state.value,
        "error_code": error_code,
        "error_message": error_message,
        "seq": first_seq,
        **_rows(events),
    }
    await database.call(run, _SETTLE, params)


async def read_log(tx: TenantRead, run_id: UUIDValue, after: int) -> LogPage | None:
    """The next page of a run's log after ``after``, with the run's state; None if it is gone."""
    rows = await tx.all(_READ, {"run": run_id, "after": after})
    if not rows:
        return None
    return LogPage(
        events=tuple(StoredEvent(r.seq, r.event, r.data) for r in rows if r.seq is not None),
        state=RunState(rows[0].state),
        error_code=rows[0].error_code,
        error_message=rows[0].error_message,
    )


_READ = (
    sa.select(
        runs.c.state,
        runs.c.error_code,
        runs.c.error_message,
        run_events.c.seq,
        run_events.c.event,
        run_events.c.data,
    )
    .select_from(
        runs.outerjoin(
            run_events,
            (run_events.c.user_id == runs.c.user_id)
            & (run_events.c.run_id == runs.c.run_id)
            & (run_events.c.seq > sa.bindparam("after", type_=sa.Integer)),
        )
    )
    .where(runs.c.run_id == sa.bindparam("run", type_=UUID))
    .order_by(run_events.c.seq)
    .limit(READ_LIMIT)
)
