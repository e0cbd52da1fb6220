"""What waits for a person's word, as their feed tells of it: each question when it has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.api.approval_views import approval_json
from app.runs.approvals import ApprovalFilter, list_approvals
from app.runs.wire import to_json
from tenancy.run_states import RunState

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from uuid import UUID

    from app.runs.approvals import Approval
    from app.runs.changes import RunChange
    from tenancy.database.tenant import TenantDatabase, TenantRead
    from tenancy.principal import Owner

MOST_OPEN = 200
"""Open questions of one person that are watched: those that were asked last."""
_MOST_OF_A_RUN = 50


class OwnApprovals:
    """One reader's view of what waits for their own word."""

    def __init__(self, database: TenantDatabase, owner: Owner) -> None:
        self._database = database
        self._owner = owner
        self._runs: dict[UUID, UUID] = {}
        """Of the open questions."""

    def may_have_changed(self, heard: Collection[UUID], changes: Iterable[RunChange]) -> bool:
        """Whether what was heard of runs, or how they stand now, may concern a question."""
        asking = set(self._runs.values())
        return not asking.isdisjoint(heard) or any(
            change.state is RunState.WAITING or change.run_id in asking for change in changes
        )

    async def news(self, runs: Collection[UUID] = ()) -> list[bytes]:
        """A frame for each that was asked or closed since the last time, or is gone.

        ``runs`` are those of which more is known than that they wait: a call of theirs that was in
        doubt may have come to something late.
        """
        async with self._database.reading(self._owner) as tx:
            found = await list_approvals(tx, ApprovalFilter(state="open"), limit=MOST_OPEN)
            known, self._runs = self._runs, {each.approval_id: each.run_id for each in found}
            past = known.keys() - self._runs.keys()
            closed = await _some(tx, past)
            late = [each for run_id in runs for each in await _late(tx, run_id)]
        gone = past - {each.approval_id for each in closed}
        told = [each for each in reversed(found) if each.approval_id not in known]
        told += closed + [each for each in late if each.approval_id not in past]
        documents = [approval_json(each) for each in told]
        documents += [{"approval_id": str(each), "removed": True} for each in gone]
        return [b"event: approval\ndata: %b\n\n" % to_json(each) for each in documents]


async def _some(tx: TenantRead, ids: Collection[UUID]) -> list[Approval]:
    return await list_approvals(tx, ApprovalFilter(ids=ids), limit=len(ids)) if ids else []


async def _late(tx: TenantRead, run_id: UUID) -> list[Approval]:
    """The questions of a run that were answered before it was known what had come of the call."""
    decided = ApprovalFilter(state="decided", kind="in_doubt", run_id=run_id)
    found = await list_approvals(tx, decided, limit=_MOST_OF_A_RUN)
    return [each for each in found if each.late_at is not None]
