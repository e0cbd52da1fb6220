"""The stored log of a run's stream: bytes, numbered from 1 without gaps.

The worker writes it through functions that carry the fence; readers read it tenant-bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.runs.states import RunState

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import ClaimedRun, Owner

READ_LIMIT = 200
READ_BYTES = 1_000_000
"""What is read at once, and so what one reader holds: at most this, or one larger event."""


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

    When ``state`` is settled and nothing ``more`` follows, the log is complete.
    """

    events: tuple[StoredEvent, ...]
    more: bool
    state: RunState
    error_code: str | None
    error_message: str | None


_APPEND = "SELECT tenant.append_events($1, $2, $3, $4, $5, $6)"
_SETTLE = "SELECT tenant.settle_run($1, $2, $3, $4, $5, $6, $7, $8, $9)"
_READ = "SELECT * FROM tenant.read_log($1, $2, $3, $4, $5)"


def _columns(events: Sequence[Event]) -> tuple[list[str], list[bytes]]:
    return [event.event for event in events], [event.data for event in events]


async def append_events(
    database: TenantDatabase, run: ClaimedRun, first_seq: int, events: Sequence[Event]
) -> None:
    """Append a flush of events to the log, if the run is still this worker's.

    Raises:
        LeaseLost: it is not; nothing was written.
    """
    await database.call(run, _APPEND, run.run_id, run.fence, first_seq, *_columns(events))


async def settle_run(
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
    outcome = (state.value, error_code, error_message)
    await database.call(run, _SETTLE, run.run_id, run.fence, *outcome, first_seq, *_columns(events))


async def read_log(
    database: TenantDatabase, owner: Owner, run_id: UUID, after: int
) -> LogPage | None:
    """The next page of a run's log after ``after``, with the run's state; None if it is gone."""
    rows = await database.call(owner, _READ, run_id, after, READ_LIMIT, READ_BYTES)
    if not rows:
        return None
    return LogPage(
        events=tuple(
            StoredEvent(row["seq"], row["event"], row["data"])
            for row in rows
            if row["seq"] is not None
        ),
        more=rows[0]["more"],
        state=RunState(rows[0]["state"]),
        error_code=rows[0]["error_code"],
        error_message=rows[0]["error_message"],
    )
