"""The stored log of a run's stream: bytes, numbered from 1 without gaps.

The worker writes it through functions that carry the fence; readers read it tenant-bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.runs.states import SETTLED
from tenancy.run_states import RunState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import ClaimedRun, Owner

READ_LIMIT = 200
READ_BYTES = 1_000_000
"""What is read at once, and so what one reader holds: at most this, or one larger event."""


@dataclass(frozen=True, slots=True)
class CheckpointRef:
    """The checkpoint that has the values which an event leaves out."""

    namespace: str
    checkpoint_id: str


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a run's stream: frozen when it was emitted, never changed since."""

    event: str
    data: bytes
    state_of: CheckpointRef | None = None


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event with its place in the log."""

    seq: int
    event: str
    data: bytes
    state_of: CheckpointRef | None = None


@dataclass(frozen=True, slots=True)
class LogPage:
    """What a reader finds after a position, and how the run stands in the same snapshot."""

    events: tuple[StoredEvent, ...]
    more: bool
    pruned_through: int
    """The last number before which retention has left gaps."""
    dropped_through: int
    """The last number before which retention has left nothing."""
    state: RunState
    error_code: str | None
    error_message: str | None

    @property
    def is_last(self) -> bool:
        """Whether the log is complete, and this its end."""
        return self.state in SETTLED and not self.more


_APPEND = "SELECT tenant.append_events($1, $2, $3, $4, $5, $6, $7, $8)"
_SETTLE = "SELECT tenant.settle_run($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"
_READ = "SELECT * FROM tenant.read_log($1, $2, $3, $4, $5)"


def _columns(events: Sequence[Event]) -> tuple[list[Any], ...]:
    refs = [event.state_of for event in events]
    return (
        [event.event for event in events],
        [event.data for event in events],
        [ref.namespace if ref else None for ref in refs],
        [ref.checkpoint_id if ref else None for ref in refs],
    )


async def append_events(
    database: TenantDatabase, run: ClaimedRun, first_seq: int, events: Sequence[Event]
) -> None:
    """Append a flush of events to the log, if the run is still this worker's.

    Raises:
        LeaseLost: it is not; nothing was written.
    """
    await database.call(run, _APPEND, run.run_id, run.fence, first_seq, *_columns(events))


async def settle_run(  # noqa: PLR0913 - what is committed as one
    database: TenantDatabase,
    run: ClaimedRun,
    state: RunState,
    first_seq: int,
    events: Sequence[Event],
    *,
    error_code: str | None = None,
    error_message: str | None = None,
    tool_calls: int = 0,
    approvals: Sequence[Mapping[str, Any]] = (),
    expire_seconds: float = 0.0,
) -> RunState:
    """End a run, or let it wait: its last events and its outcome, in one transaction.

    ``tool_calls`` are those of this attempt. ``approvals`` are what a run that is to wait asks its
    person, by the columns' names, hashes as hex; each is open for ``expire_seconds``. Returns the
    state that it is in now: ``cancelled``, whatever was asked, if a cancel of it was accepted
    before; ``error`` where all that it asks was decided before, so that nothing is open.

    Raises:
        LeaseLost: the run is another worker's, or gone; nothing was written.
    """
    outcome = (state.value, error_code, error_message)
    claim = (run.run_id, run.fence)
    told = (first_seq, *_columns(events), tool_calls)
    asked = ([dict(each) for each in approvals], expire_seconds)
    (row,) = await database.call(run, _SETTLE, *claim, *outcome, *told, *asked)
    return RunState(row[0])


def _reference(row: Mapping[str, Any]) -> CheckpointRef | None:
    if row["checkpoint_id"] is None:
        return None
    return CheckpointRef(row["checkpoint_ns"], row["checkpoint_id"])


async def read_log(
    database: TenantDatabase, owner: Owner, run_id: UUID, after: int
) -> LogPage | None:
    """The next page of a run's log after ``after``, with the run's state; None if it is gone."""
    rows = await database.call(owner, _READ, run_id, after, READ_LIMIT, READ_BYTES)
    if not rows:
        return None
    return LogPage(
        events=tuple(
            StoredEvent(row["seq"], row["event"], row["data"], _reference(row))
            for row in rows
            if row["seq"] is not None
        ),
        more=rows[0]["more"],
        pruned_through=rows[0]["pruned_through"],
        dropped_through=rows[0]["dropped_through"],
        state=RunState(rows[0]["state"]),
        error_code=rows[0]["error_code"],
        error_message=rows[0]["error_message"],
    )
