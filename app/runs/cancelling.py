"""Cancelling runs. Accepted means committed: the caller announces afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from uuid import UUID

from tenancy.run_states import RunState

if TYPE_CHECKING:
    from collections.abc import Collection

    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner

CancelAction = Literal["interrupt", "rollback"]
"""``interrupt`` keeps what the run wrote to its thread, ``rollback`` takes it back."""


@dataclass(frozen=True, slots=True)
class CancelledRun:
    """An open run whose cancel was accepted: ``running`` until its worker has stopped it."""

    run_id: UUID
    thread_id: UUID
    state: RunState


_CANCEL = "SELECT * FROM tenant.cancel_runs($1, $2, $3, $4, $5)"


async def cancel_runs(
    database: TenantDatabase,
    owner: Owner,
    *,
    thread_id: UUID | None = None,
    run_ids: Collection[UUID] | None = None,
    states: Collection[RunState] | None = None,
    action: CancelAction = "interrupt",
) -> list[CancelledRun]:
    """Cancel the owner's open runs that match every given condition; say which those were.

    One that no living worker holds is cancelled on return. A running one carries the request from
    now on: it can only end as cancelled. Runs that have ended, and those of others, are left out.
    """
    rows = await database.call(
        owner,
        _CANCEL,
        thread_id,
        list(run_ids) if run_ids is not None else None,
        [state.value for state in states] if states is not None else None,
        action,
    )
    return [CancelledRun(row["run_id"], row["thread_id"], RunState(row["state"])) for row in rows]
