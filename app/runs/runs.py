"""Accepting runs, and reading them. Accepted means committed: the caller announces afterwards."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID, uuid4

import sqlalchemy as sa

from app.runs import threads as thread_rows
from app.runs.thread_size import require_room
from tenancy.errors import RunNotFound, ThreadNotFound
from tenancy.run_states import RunState
from tenancy.tables import runs, threads

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from tenancy.database.tenant import TenantDatabase, TenantRead
    from tenancy.principal import Owner
    from tenancy.scheduler.limits import Limits

StreamMode = Literal[
    "values",
    "updates",
    "messages",
    "messages-tuple",
    "custom",
    "tasks",
    "checkpoints",
    "debug",
]

MultitaskStrategy = Literal["enqueue", "reject", "interrupt", "rollback"]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a client asked to be executed. Stored whole in the run's row.

    ``config`` holds ``tags``, ``recursion_limit`` and ``configurable`` as LangGraph takes them,
    already cleared of everything a client may not choose.
    """

    input: Any = None
    config: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] | None = None
    stream_modes: tuple[StreamMode, ...] = ("values",)
    stream_subgraphs: bool = False
    checkpoint_id: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The form in which it is stored."""
        return {
            "input": self.input,
            "config": dict(self.config),
            "context": self.context,
            "stream_modes": list(self.stream_modes),
            "stream_subgraphs": self.stream_subgraphs,
            "checkpoint_id": self.checkpoint_id,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> RunRequest:
        """Back from the stored form."""
        return cls(**{**stored, "stream_modes": tuple(stored["stream_modes"])})


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a graph on a thread, as its owner sees it.

    What was asked for is read by itself: it holds the whole input.
    """

    run_id: UUID
    thread_id: UUID
    assistant_id: UUID
    graph_id: str
    state: RunState
    attempt: int
    metadata: Mapping[str, Any]
    multitask_strategy: str
    error_code: str | None
    error_message: str | None
    cancel_requested_at: datetime | None
    priority: int
    due_at: datetime
    """When it takes its place in its thread's queue: later than ``created_at`` if scheduled."""
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """What makes two requests one: the same key on the same route, with the same body."""

    route: str
    key: str
    fingerprint: bytes


@dataclass(frozen=True, slots=True)
class AcceptedRun:
    """A run that was accepted, and what that did to the others on its thread."""

    run: Run
    is_new: bool = True
    """False when an idempotency key brought back one that was accepted before."""
    stopping: tuple[UUID, ...] = ()
    """Running ones that were told to stop; their workers are to be told."""
    ended: tuple[UUID, ...] = ()
    """Those that were cancelled on the spot; who follows them is to be told."""


NO_KEY = (None, None, None)
"""What stands for a request without an idempotency key."""

_COLUMNS = (
    runs.c.run_id,
    runs.c.thread_id,
    runs.c.assistant_id,
    runs.c.graph_id,
    runs.c.state,
    runs.c.attempt,
    runs.c.metadata,
    runs.c.multitask_strategy,
    runs.c.error_code,
    runs.c.error_message,
    runs.c.cancel_requested_at,
    runs.c.priority,
    runs.c.due_at,
    runs.c.created_at,
    runs.c.updated_at,
)


def _run(row: sa.Row[Any]) -> Run:
    fields = {**row._mapping}  # noqa: SLF001 - SQLAlchemy's public name for it
    fields["state"] = RunState(row.state)
    return Run(**fields)


_ACCEPT = (
    "SELECT * FROM tenant.accept_run("
    "$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)"
)


async def create_run(  # noqa: PLR0913 - what a run is made of
    database: TenantDatabase,
    owner: Owner,
    *,
    thread_id: UUID,
    assistant_id: UUID,
    graph_id: str,
    request: RunRequest,
    metadata: Mapping[str, Any] | None = None,
    title: str | None = None,
    if_not_exists: Literal["create", "reject"] = "reject",
    multitask_strategy: MultitaskStrategy = "enqueue",
    priority: int = 0,
    after_seconds: float = 0,
    limits: Limits | None = None,
    idempotency: IdempotencyKey | None = None,
    request_id: str | None = None,
) -> AcceptedRun:
    """Put a run into its thread's queue. It is committed on return; the caller announces it.

    ``title`` becomes the thread's title if it has none. The thread is locked first, so runs
    of one thread are ordered as they were accepted, and what ``multitask_strategy`` says about
    the thread's other runs is decided for one at a time. ``priority`` orders the user's threads,
    higher first; a run is not begun before ``after_seconds`` are over. ``limits`` are those of the
    service, for whom no others were set. ``request_id`` is what operators find the request by
    that this comes with; of one that an idempotency key brings back, the first one's is kept.

    Raises:
        TooManyQueuedRuns, TooManyThreads, TokenBudgetExhausted: a limit of the user's is reached.
        ThreadNotFound: no such thread, and ``if_not_exists`` is ``reject``.
        ThreadTooLarge: the thread holds too much already for an input as large as this one.
        ThreadBusy: the strategy is ``reject`` and the thread has a run; or it is being deleted.
        IdempotencyConflict: the key came with another request before.
        RunNotFound: the run that the key stands for was deleted meanwhile.
    """
    await require_room(database, owner, thread_id, (request.input, request.context))
    run_id, create = uuid4(), if_not_exists == "create"
    kept = dict(metadata or {})
    what = (assistant_id, graph_id, request.as_json(), kept, title)
    key = (idempotency.route, idempotency.key, idempotency.fingerprint) if idempotency else NO_KEY
    rows = await database.call(
        owner,
        _ACCEPT,
        *(thread_id, run_id, *what, create, multitask_strategy),
        *(priority, float(after_seconds), limits or {}),
        *key,
        request_id,
    )
    if not rows:
        raise ThreadNotFound
    (row,) = rows
    if row["run_id"] != run_id:
        async with database.reading(owner) as tx:
            return AcceptedRun(await get_run(tx, thread_id, row["run_id"]), is_new=False)
    run = Run(
        run_id=run_id,
        thread_id=thread_id,
        assistant_id=assistant_id,
        graph_id=graph_id,
        state=RunState.PENDING,
        attempt=0,
        metadata=kept,
        multitask_strategy=multitask_strategy,
        error_code=None,
        error_message=None,
        cancel_requested_at=None,
        priority=priority,
        due_at=row["accepted_at"] + timedelta(seconds=after_seconds),
        created_at=row["accepted_at"],
        updated_at=row["accepted_at"],
    )
    return AcceptedRun(run, stopping=tuple(row["stopping"]), ended=tuple(row["ended"]))


async def get_run(tx: TenantRead, thread_id: UUID, run_id: UUID) -> Run:
    """Return one run of a thread.

    Raises:
        RunNotFound: the user has no such run on that thread.
    """
    is_there = (
        sa.exists()
        .where(threads.c.user_id == runs.c.user_id, threads.c.thread_id == runs.c.thread_id)
        .where(threads.c.deleted_at.is_(None))
    )
    row = await tx.first(
        sa.select(*_COLUMNS).where(runs.c.run_id == run_id, runs.c.thread_id == thread_id, is_there)
    )
    if row is None:
        raise RunNotFound
    return _run(row)


async def get_request(tx: TenantRead, run_id: UUID) -> RunRequest:
    """Return what was asked for when a run was accepted; it may be as large as a body.

    Raises:
        RunNotFound: the user has no such run.
    """
    stored = await tx.scalar(sa.select(runs.c.request).where(runs.c.run_id == run_id))
    if stored is None:
        raise RunNotFound
    return RunRequest.from_json(stored)


async def list_runs(
    tx: TenantRead,
    thread_id: UUID,
    *,
    states: Iterable[RunState] | None = None,
    limit: int = 10,
    offset: int = 0,
) -> list[Run]:
    """A page of a thread's runs, newest first.

    Raises:
        ThreadNotFound: the user has no such thread.
    """
    await thread_rows.require_thread(tx, thread_id)
    query = sa.select(*_COLUMNS).where(runs.c.thread_id == thread_id)
    if states is not None:
        query = query.where(runs.c.state.in_([state.value for state in states]))
    query = query.order_by(runs.c.created_at.desc(), runs.c.run_id)
    return [_run(row) for row in await tx.all(query.limit(limit).offset(offset))]
