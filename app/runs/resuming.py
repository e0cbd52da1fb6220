"""Answering what a run waits for: the run itself goes on. The caller announces it afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeGuard
from uuid import UUID, uuid4

import sqlalchemy as sa

from app.runs.runs import NO_KEY, Run, RunRequest, get_run
from app.runs.threads import require_thread
from tenancy.errors import InvalidInput, NothingWaits
from tenancy.run_states import RunState
from tenancy.tables import runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.runs.runs import IdempotencyKey, StreamMode
    from tenancy.database.tenant import TenantDatabase, TenantRead
    from tenancy.principal import Owner

_ID_LENGTH = 32
_HEX = frozenset("0123456789abcdef")


class AmbiguousAnswer(InvalidInput):
    """A bare answer, where several things are asked."""

    code = "ambiguous_answer"
    message = "Several interrupts are open: say in `command.resume` which one each answer is for."


@dataclass(frozen=True, slots=True)
class WaitingRun:
    """A run that waits for a person."""

    run: Run
    request: RunRequest
    fence: int
    """It changes before the run can wait for anything else."""


@dataclass(frozen=True, slots=True)
class Resume:
    """What a run goes on with. Stored in its row; the next answer takes its place.

    LangGraph is only ever given a map by interrupts' ids: a bare answer that is given again after a
    crash would answer the next question.
    """

    answers: Mapping[str, Any]
    stream_modes: tuple[StreamMode, ...] = ()
    """What whoever answered wants to read, beside what the run was made to stream."""
    stream_subgraphs: bool = False

    def as_json(self) -> dict[str, Any]:
        """The form in which it is stored."""
        return {
            "answers": dict(self.answers),
            "stream_modes": list(self.stream_modes),
            "stream_subgraphs": self.stream_subgraphs,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Resume:
        """Back from the stored form."""
        return cls(**{**stored, "stream_modes": tuple(stored["stream_modes"])})

    def extended(self, request: RunRequest) -> RunRequest:
        """What the run was made of, with what else is to be streamed from now on."""
        return replace(
            request,
            stream_modes=tuple(dict.fromkeys((*request.stream_modes, *self.stream_modes))),
            stream_subgraphs=request.stream_subgraphs or self.stream_subgraphs,
        )


@dataclass(frozen=True, slots=True)
class ResumedRun:
    """A run that goes on."""

    run: Run
    after: int = 0
    """The last event of its log until then. 0: an idempotency key brought it back."""


async def find_waiting_run(tx: TenantRead, thread_id: UUID) -> WaitingRun:
    """The run of a thread that waits for a person.

    Raises:
        ThreadNotFound: the user has no such thread.
        NothingWaits: it has no such run.
    """
    await require_thread(tx, thread_id)
    row = await tx.first(
        sa.select(runs.c.run_id, runs.c.fence, runs.c.request).where(
            runs.c.thread_id == thread_id, runs.c.state == RunState.WAITING.value
        )
    )
    if row is None:
        raise NothingWaits
    run = await get_run(tx, thread_id, row.run_id)
    return WaitingRun(run, RunRequest.from_json(row.request), row.fence)


async def require_waiting(tx: TenantRead, waiting: WaitingRun) -> None:
    """See that a run has waited ever since it was found: what was read meanwhile is what it asks.

    Raises:
        NothingWaits: it has not.
    """
    still = sa.select(runs.c.run_id).where(
        runs.c.run_id == waiting.run.run_id,
        runs.c.state == RunState.WAITING.value,
        runs.c.fence == waiting.fence,
    )
    if await tx.scalar(still) is None:
        raise NothingWaits


def answers_by_interrupt(given: object, interrupts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Whose answers they are: a map by open interrupts' ids, or a bare one to the only one.

    Those that are not answered are asked again once the others have gone on.

    Raises:
        NothingWaits: what it answers is not open, or not any more.
        AmbiguousAnswer: several are open, and it does not say which it is for.
    """
    asked = {interrupt["id"]: interrupt["value"] for interrupt in interrupts}
    if not asked:
        raise NothingWaits
    if _is_by_id(given):
        if not asked.keys() >= given.keys():
            raise NothingWaits
        return dict(given)
    if len(asked) > 1:
        raise AmbiguousAnswer
    return dict.fromkeys(asked, given)


def _is_by_id(given: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether LangGraph, too, would take it for a map by interrupts' ids."""
    return (
        isinstance(given, Mapping)
        and bool(given)
        and all(len(key) == _ID_LENGTH and _HEX.issuperset(key) for key in given)
    )


_RESUME = "SELECT * FROM tenant.resume_run($1, $2, $3, $4, $5, $6, $7, $8, $9)"


async def resume_run(
    database: TenantDatabase,
    owner: Owner,
    waiting: WaitingRun,
    resume: Resume,
    idempotency: IdempotencyKey | None = None,
) -> ResumedRun:
    """Let a run go on. It is committed on return; of several answers at once, one counts.

    Raises:
        NothingWaits: the run was answered, cancelled or deleted meanwhile.
        ThreadNotFound: with its thread.
        IdempotencyConflict: the key came with another request before.
        RunNotFound: the run that the key stands for was deleted meanwhile.
    """
    run = waiting.run
    key = (idempotency.route, idempotency.key, idempotency.fingerprint) if idempotency else NO_KEY
    of_run = (run.thread_id, run.run_id, waiting.fence)
    (row,) = await database.call(owner, _RESUME, *of_run, resume.as_json(), uuid4(), *key)
    if row["resumed_at"] is None:
        async with database.reading(owner) as tx:
            return ResumedRun(await get_run(tx, run.thread_id, row["run_id"]))
    going = replace(run, state=RunState.PENDING, updated_at=row["resumed_at"])
    return ResumedRun(going, row["last_seq"])
