"""What waits for a person's word, as their feed tells of it: each question when it has changed."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from app.api.approval_views import approval_json
from app.runs.approvals import ApprovalFilter, find_approvals, read_approvals
from app.runs.wire import to_json
from tenancy.run_states import RunState

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
    from uuid import UUID

    from app.runs.approvals import Approval
    from app.runs.changes import RunChange
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner

MOST_OPEN = 200
"""Open questions of one person that are watched: those that were asked last."""
_MOST_OF_A_RUN = 50
_OPEN = ApprovalFilter(state="open")


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

    async def begin(self) -> None:
        """Take what is open for told."""
        async with self._database.reading(self._owner) as tx:
            self._runs = await find_approvals(tx, _OPEN, limit=MOST_OPEN)

    async def news(self, runs: Collection[UUID] = ()) -> AsyncGenerator[bytes, None]:
        """A frame for each that was asked or closed since the last time, or is gone.

        ``runs`` are those of which more is known than that they wait: a call of theirs that was in
        doubt may have come to something late.
        """
        known = self._runs
        await self.begin()
        asked = [each for each in reversed(self._runs) if each not in known]
        past = [each for each in known if each not in self._runs]
        told: set[UUID] = set()
        async with aclosing(self._read([*asked, *past])) as found:
            async for each in found:
                told.add(each.approval_id)
                yield _frame(approval_json(each))
        for approval_id in past:
            if approval_id not in told:
                yield _frame({"approval_id": str(approval_id), "removed": True})
        for run_id in runs:
            async with aclosing(self._read(await self._doubts(run_id))) as found:
                async for each in found:
                    if each.late_at is not None and each.approval_id not in told:
                        yield _frame(approval_json(each))

    def _read(self, ids: Sequence[UUID]) -> AsyncGenerator[Approval, None]:
        return read_approvals(self._database, self._owner, ids)

    async def _doubts(self, run_id: UUID) -> list[UUID]:
        """The questions of a run that were answered before it was known what came of the call."""
        decided = ApprovalFilter(state="decided", kind="in_doubt", run_id=run_id)
        async with self._database.reading(self._owner) as tx:
            return [*await find_approvals(tx, decided, limit=_MOST_OF_A_RUN)]


def _frame(document: Mapping[str, Any]) -> bytes:
    return b"event: approval\ndata: %b\n\n" % to_json(document)
