"""Conversations: stored, searched, counted, in the caller's transaction.

One that is being deleted is not there, though it may have rows for a while.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID, uuid4

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as pg_insert

from app.runs.states import ThreadStatus
from tenancy.errors import ThreadAlreadyExists, ThreadBusy, ThreadNotFound
from tenancy.run_states import OPEN, RunState
from tenancy.tables import runs, threads

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from tenancy.database.tenant import TenantRead, TenantWrite
    from tenancy.scheduler.limits import Limits

SortBy = Literal["thread_id", "created_at", "updated_at", "status"]
SortOrder = Literal["asc", "desc"]

TITLE_LENGTH = 80


@dataclass(frozen=True, slots=True)
class Thread:
    """One conversation, as its owner sees it in a list."""

    thread_id: UUID
    title: str | None
    metadata: Mapping[str, Any]
    status: ThreadStatus
    run_state: RunState | None
    """How its newest open run stands, a queued one last; else its last run. None without any."""
    created_at: datetime
    updated_at: datetime
    ttl_minutes: float | None = None
    """How long it is kept after the last time that anything happened in it."""
    expires_at: datetime | None = None
    """When that is over, if nothing happens any more."""


class Unchanged(Enum):
    """Stands where nothing is to change."""

    UNCHANGED = "unchanged"


UNCHANGED = Unchanged.UNCHANGED


@dataclass(frozen=True, slots=True)
class ThreadFilter:
    """Which threads: all that match every given field."""

    metadata: Mapping[str, Any] = field(default_factory=dict)
    status: ThreadStatus | None = None
    ids: tuple[UUID, ...] | None = None


_MINE = (runs.c.user_id == threads.c.user_id) & (runs.c.thread_id == threads.c.thread_id)
_IS_OPEN = runs.c.state.in_(tuple(state.value for state in OPEN))
_NEWEST_FIRST = (runs.c.created_at.desc(), runs.c.run_id)
_STATES = sa.select(sa.cast(runs.c.state, sa.Text)).where(_MINE).limit(1)


def _last() -> sa.ScalarSelect[str]:
    """The state of a thread's newest run."""
    return _STATES.order_by(*_NEWEST_FIRST).scalar_subquery()


def _run_state() -> sa.ColumnElement[str]:
    """What is under way says more about a thread than what is queued behind it."""
    queued_last = (runs.c.state == RunState.PENDING.value, *_NEWEST_FIRST)
    return sa.func.coalesce(
        _STATES.where(_IS_OPEN).order_by(*queued_last).scalar_subquery(), _last()
    )


def _status() -> sa.ColumnElement[str]:
    """Busy beats waiting beats how the last run ended."""
    open_states = (
        sa.select(
            sa.case(
                (sa.func.bool_or(runs.c.state != "waiting"), ThreadStatus.BUSY.value),
                (sa.func.count() > 0, ThreadStatus.INTERRUPTED.value),
            )
        )
        .where(_MINE, _IS_OPEN)
        .scalar_subquery()
    )
    failed = sa.case(
        (_last().in_(("error", "timeout")), ThreadStatus.ERROR.value),
        else_=ThreadStatus.IDLE.value,
    )
    return sa.func.coalesce(open_states, failed)


_COLUMNS = (
    threads.c.thread_id,
    threads.c.title,
    threads.c.metadata,
    threads.c.created_at,
    threads.c.updated_at,
    threads.c.ttl_minutes,
)


def _expires_at() -> sa.ColumnElement[Any]:
    """A thread's time begins with its last change, or where a run ended later, with that."""
    last_end = sa.select(sa.func.max(runs.c.ended_at)).where(_MINE).scalar_subquery()
    time = sa.func.make_interval(0, 0, 0, 0, 0, 0, threads.c.ttl_minutes * 60)
    return sa.case(
        (
            threads.c.ttl_minutes.is_not(None),
            sa.func.greatest(threads.c.expires_at, last_end + time),
        )
    )


_IS_THERE = threads.c.deleted_at.is_(None)


def _select() -> sa.Select[Any]:
    columns = (
        *_COLUMNS,
        _expires_at().label("expires_at"),
        _status().label("status"),
        _run_state().label("run_state"),
    )
    return sa.select(*columns).where(_IS_THERE)


def _thread(row: sa.Row[Any]) -> Thread:
    return Thread(
        thread_id=row.thread_id,
        title=row.title,
        metadata=row.metadata,
        status=ThreadStatus(row.status),
        run_state=RunState(row.run_state) if row.run_state else None,
        created_at=row.created_at,
        updated_at=row.updated_at,
        ttl_minutes=row.ttl_minutes,
        expires_at=row.expires_at,
    )


def _matching(query: sa.Select[Any], wanted: ThreadFilter) -> sa.Select[Any]:
    if wanted.metadata:
        query = query.where(threads.c.metadata.contains(dict(wanted.metadata)))
    if wanted.status is not None:
        query = query.where(_status() == wanted.status.value)
    if wanted.ids is not None:
        query = query.where(threads.c.thread_id.in_(wanted.ids))
    return query


_REQUIRE_THREADS = sa.text(
    "SELECT tenant.require_threads(:user, tenant.limits_of(:user, :defaults))"
).bindparams(sa.bindparam("user", type_=sa.Uuid), sa.bindparam("defaults", type_=JSONB))


async def create_thread(
    tx: TenantWrite,
    *,
    thread_id: UUID | None = None,
    metadata: Mapping[str, Any] | None = None,
    if_exists: Literal["raise", "do_nothing"] = "raise",
    ttl_minutes: float | None = None,
    limits: Limits | None = None,
) -> Thread:
    """Create a thread, or return the one that has this id if the caller wants that.

    ``limits`` are the service's own, for whom no others were set.

    Raises:
        TooManyThreads: the user keeps as many as they may.
        ThreadAlreadyExists: the user has one with this id, and ``if_exists`` is ``raise``.
        ThreadBusy: one with this id is being deleted.
    """
    new_id = thread_id or uuid4()
    made = await tx.change(
        pg_insert(threads)
        .values(
            user_id=tx.user_id,
            thread_id=new_id,
            metadata=dict(metadata or {}),
            ttl_minutes=ttl_minutes,
        )
        .on_conflict_do_nothing(index_elements=["user_id", "thread_id"])
    )
    try:
        thread = await get_thread(tx, new_id)
    except ThreadNotFound:
        raise ThreadBusy("A thread with this id is being deleted.") from None
    if not made and if_exists == "raise":
        raise ThreadAlreadyExists
    if made:
        await tx.scalar(_REQUIRE_THREADS, {"user": tx.user_id, "defaults": limits or {}})
    return thread


async def get_thread(tx: TenantRead, thread_id: UUID) -> Thread:
    """Return one thread.

    Raises:
        ThreadNotFound: the user has none with this id.
    """
    row = await tx.first(_select().where(threads.c.thread_id == thread_id))
    if row is None:
        raise ThreadNotFound
    return _thread(row)


async def require_thread(tx: TenantRead, thread_id: UUID) -> None:
    """See that a thread is there. How it stands costs more to say.

    Raises:
        ThreadNotFound: the user has none with this id.
    """
    query = sa.select(threads.c.thread_id).where(threads.c.thread_id == thread_id, _IS_THERE)
    if await tx.scalar(query) is None:
        raise ThreadNotFound


async def update_thread(
    tx: TenantWrite,
    thread_id: UUID,
    *,
    metadata: Mapping[str, Any],
    ttl_minutes: float | Unchanged | None = UNCHANGED,
) -> Thread:
    """Merge metadata into a thread's own; a key given as null stays, with the value null.

    A time to live begins anew, whether it is changed or not; None takes it away.

    Raises:
        ThreadNotFound: the user has none with this id.
    """
    merged = threads.c.metadata.op("||")(sa.cast(dict(metadata), JSONB))
    kept = {} if isinstance(ttl_minutes, Unchanged) else {"ttl_minutes": ttl_minutes}
    changed = await tx.change(
        sa.update(threads)
        .where(threads.c.thread_id == thread_id, _IS_THERE)
        .values(metadata=merged, updated_at=sa.func.clock_timestamp(), **kept)
    )
    if not changed:
        raise ThreadNotFound
    return await get_thread(tx, thread_id)


async def search_threads(
    tx: TenantRead,
    wanted: ThreadFilter,
    *,
    limit: int = 10,
    offset: int = 0,
    sort_by: SortBy = "updated_at",
    sort_order: SortOrder = "desc",
) -> list[Thread]:
    """One page of the user's threads, newest change first unless asked otherwise."""
    by = _status() if sort_by == "status" else threads.c[sort_by]
    ordered = by.asc() if sort_order == "asc" else by.desc()
    query = _matching(_select(), wanted).order_by(ordered, threads.c.thread_id)
    return [_thread(row) for row in await tx.all(query.limit(limit).offset(offset))]


async def count_threads(tx: TenantRead, wanted: ThreadFilter) -> int:
    """How many of the user's threads match."""
    query = _matching(sa.select(sa.func.count()).select_from(threads).where(_IS_THERE), wanted)
    return int(await tx.scalar(query))
