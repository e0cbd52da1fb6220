"""Reading questions to a person: calls that wait for their word, and how those were decided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from tenancy.errors import ApprovalNotFound, Conflict
from tenancy.tables import approvals, threads

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from sqlalchemy.sql.elements import ColumnElement

    from tenancy.database.tenant import TenantDatabase, TenantRead
    from tenancy.principal import Owner

HELD_AT_ONCE = 5
"""Approvals of many: what a tool's server asks may be megabytes."""

Kind = Literal["call", "elicitation", "in_doubt"]
ApprovalState = Literal["open", "decided", "expired", "superseded"]
DecisionWord = Literal["approve", "edit", "reject", "answer", "happened", "repeat", "leave_out"]
"""The first three are for a call, ``answer`` for what its server asks, the others for doubt."""


@dataclass(frozen=True, slots=True)
class Approval:
    """One call of a tool that waits, or waited, for its person."""

    approval_id: UUID
    kind: Kind
    thread_id: UUID
    run_id: UUID
    interrupt_id: str
    message_id: str
    tool_call_id: str
    server: str | None
    """None: the tool comes with the service."""
    tool: str
    arguments: Mapping[str, Any]
    """Exactly those of the call."""
    arguments_sha256: bytes
    asked: Mapping[str, Any]
    """What else the person is shown; it depends on the kind."""
    decisions: tuple[DecisionWord, ...]
    """Those that can be taken."""
    subject: str | None
    policy_version: str | None
    state: ApprovalState
    decision: DecisionWord | None
    decided_arguments: Mapping[str, Any] | None
    """What the person made of the arguments, if anything."""
    for_thread: bool
    """Whether the decision lets calls like this one be made for the rest of the conversation."""
    reason: str | None
    replies: Mapping[str, Any] | None
    created_at: datetime
    expires_at: datetime
    decided_at: datetime | None
    """When it was closed, in whichever way."""
    thread_title: str | None
    late_at: datetime | None = None
    """When its server answered a call that was in doubt, if it did."""
    late_result: Mapping[str, Any] | None = None
    """``content`` and ``outcome`` of that answer."""

    @property
    def may_open_thread(self) -> bool:
        """Whether the person may say "always in this conversation"."""
        return bool(self.asked.get("may_open_thread", False))


class ApprovalClosed(Conflict):
    """Somebody has decided already, or it was taken back; says how it stands."""

    code = "approval_closed"
    message = "This was decided already, or is not asked any more."

    def __init__(self, approval: Approval) -> None:
        super().__init__()
        self.approval = approval


@dataclass(frozen=True, slots=True)
class ApprovalFilter:
    """Which of a person's approvals are meant: those that match everything given."""

    state: ApprovalState | None = None
    kind: Kind | None = None
    thread_id: UUID | None = None
    run_id: UUID | None = None
    server: str | None = None
    ids: Collection[UUID] | None = None
    interrupts: Collection[str] | None = None
    """Under which they are asked, by their ids."""


_FIELDS = tuple(approvals.c[name] for name in Approval.__dataclass_fields__ if name in approvals.c)
_EQUAL = ("state", "kind", "thread_id", "run_id", "server")
_NEWEST_FIRST = (approvals.c.created_at.desc(), approvals.c.approval_id)
_OF_THREADS = approvals.join(
    threads,
    (threads.c.user_id == approvals.c.user_id)
    & (threads.c.thread_id == approvals.c.thread_id)
    & threads.c.deleted_at.is_(None),
)
_LATE = (
    sa.func.tenant.late_outcome(
        approvals.c.user_id,
        approvals.c.thread_id,
        approvals.c.message_id,
        approvals.c.tool_call_id,
    )
    .table_valued("late_at", sa.column("late_result", JSONB))
    .lateral("late")
)


async def find_approval(tx: TenantRead, approval_id: UUID) -> Approval:
    """One of the person's approvals.

    Raises:
        ApprovalNotFound: there is none, or it is somebody else's.
    """
    found = await list_approvals(tx, ApprovalFilter(ids=[approval_id]), limit=1)
    if not found:
        raise ApprovalNotFound
    return found[0]


async def list_approvals(
    tx: TenantRead, wanted: ApprovalFilter = ApprovalFilter(), *, limit: int = 10, offset: int = 0
) -> list[Approval]:
    """A page of the person's approvals over all threads, the newest first."""
    query = (
        sa.select(*_FIELDS, threads.c.title.label("thread_title"), *_LATE.c)
        .select_from(_OF_THREADS.outerjoin(_LATE, approvals.c.kind == "in_doubt"))
        .where(*_conditions(tx, wanted))
        .order_by(*_NEWEST_FIRST)
        .limit(limit)
        .offset(offset)
    )
    return [_approval(row) for row in await tx.all(query)]


async def find_approvals(
    tx: TenantRead, wanted: ApprovalFilter = ApprovalFilter(), *, limit: int = 10, offset: int = 0
) -> dict[UUID, UUID]:
    """The ids of such a page, each with its run's: one approval may hold a large call."""
    query = (
        sa.select(approvals.c.approval_id, approvals.c.run_id)
        .select_from(_OF_THREADS)
        .where(*_conditions(tx, wanted))
        .order_by(*_NEWEST_FIRST)
        .limit(limit)
        .offset(offset)
    )
    return {row.approval_id: row.run_id for row in await tx.all(query)}


async def read_approvals(
    database: TenantDatabase, owner: Owner, ids: Sequence[UUID]
) -> AsyncGenerator[Approval, None]:
    """Those of the person's that are still there, in this order; few of them are held at once."""
    for first in range(0, len(ids), HELD_AT_ONCE):
        some = ids[first : first + HELD_AT_ONCE]
        async with database.reading(owner) as tx:
            read = await list_approvals(tx, ApprovalFilter(ids=some), limit=len(some))
        found = {each.approval_id: each for each in read}
        del read
        for approval_id in some:
            if (each := found.pop(approval_id, None)) is not None:
                yield each


async def count_approvals(tx: TenantRead, wanted: ApprovalFilter = ApprovalFilter()) -> int:
    """How many there are of them."""
    query = sa.select(sa.func.count()).select_from(_OF_THREADS).where(*_conditions(tx, wanted))
    return int(await tx.scalar(query))


def _conditions(tx: TenantRead, wanted: ApprovalFilter) -> list[ColumnElement[bool]]:
    columns = approvals.c
    given = {name: getattr(wanted, name) for name in _EQUAL}
    conditions = [
        columns.user_id == tx.user_id,
        *(columns[name] == value for name, value in given.items() if value is not None),
    ]
    if wanted.ids is not None:
        conditions.append(columns.approval_id.in_(list(wanted.ids)))
    if wanted.interrupts is not None:
        conditions.append(columns.interrupt_id.in_(list(wanted.interrupts)))
    return conditions


def _approval(row: sa.Row[Any]) -> Approval:
    fields = {**row._mapping}  # noqa: SLF001 - SQLAlchemy's public name for it
    fields["decisions"] = tuple(row.decisions)
    return Approval(**fields)
