"""How what is due goes: in batches, each its own transaction, and with a pause after each.

A pause is as long as the batch took, so retention uses a connection, and the disk behind it, for
half of the time at most.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

import structlog

from app.logging import facts_of
from tenancy.database.engine import DatabaseUnavailable
from tenancy.errors import StoaError, UserUnavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from uuid import UUID

    from app.worker.retention.meter import RetentionMeter
    from tenancy.database.due import DropStatement, DueQuery
    from tenancy.database.tenant import TenantDatabase
    from tenancy.database.upkeep import DueRow, UpkeepDatabase

log = structlog.get_logger(__name__)

T = TypeVar("T")

OWNERS = 100
"""Runs, users or threads that are looked up at once."""
ROWS = 1000
"""Rows that one transaction deletes."""
TURN_SECONDS = 60.0
"""How long one kind is looked after before the next one is, however much of it is due."""
MOST_PASSED_OVER = 200
"""Where more than so many of a kind do not go, it is none of theirs that is wrong."""
_TOOK_TOO_LONG = "57014"
"""The SQLSTATE of a statement that was ended by its time-out."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a duty is done with."""

    upkeep: UpkeepDatabase
    database: TenantDatabase
    meter: RetentionMeter
    owners: int = OWNERS
    rows: int = ROWS
    turn_seconds: float = TURN_SECONDS


class Turn:
    """The time that one kind has."""

    def __init__(self, seconds: float) -> None:
        self._clock = asyncio.get_running_loop().time
        self._end = self._clock() + seconds

    @property
    def is_over(self) -> bool:
        """Whether others are next."""
        return self._clock() >= self._end


class Duty(Protocol):
    """One kind of data that is kept for a while only."""

    @property
    def kind(self) -> str:
        """What it is called in metrics and logs."""
        ...

    async def perform(self, work: Work) -> None:
        """Drop what is due.

        Raises:
            StoaError: something could not be reached; what was begun is found again.
        """
        ...


@dataclass(frozen=True, slots=True)
class OwnedDuty:
    """What is somebody's: found for all, dropped for each of them through the tenant door."""

    kind: str
    query: DueQuery
    call: str
    """Of one that takes a user, the row where one was found, ``seconds``, rows at most."""
    after: tuple[float, ...] = ()
    """The query's times in seconds."""
    seconds: tuple[float | None, ...] = ()
    """The function's."""
    in_batches: bool = True
    """Whether the function is told how many rows it may drop."""

    async def perform(self, work: Work) -> None:
        """Drop what is due, until there is none or the turn is over.

        What does not go is passed over, and left to the next look.
        """
        turn = Turn(work.turn_seconds)
        passed_over: set[UUID] = set()
        tried: set[UUID] = set()
        first = True
        while not turn.is_over:
            found = await work.upkeep.due(self.query, work.owners, *self.after, but=passed_over)
            if first:
                work.meter.found(self.kind, max((d.overdue_seconds for d in found), default=0.0))
                first = False
            if not found or len(passed_over) > MOST_PASSED_OVER:
                return
            passed_over |= {due.id for due in found} & tried
            tried = {due.id for due in found}
            for due in found:
                if due.id not in passed_over and not turn.is_over:
                    await self._drop(work, due, turn)

    async def _drop(self, work: Work, due: DueRow, turn: Turn) -> None:
        """Call the function until it has left nothing to do, or is not to be called any more."""
        row = () if due.row_id is None else (due.row_id,)
        what = (*row, *self.seconds, *((work.rows,) if self.in_batches else ()))
        try:
            done = False
            while not done and not turn.is_over:
                ((dropped, done),) = await paced(work.database.call(due, self.call, *what))
                work.meter.dropped(self.kind, dropped)
        except UserUnavailable:  # suspended or erased since it was found
            return
        except DatabaseUnavailable as error:
            if error.sqlstate != _TOOK_TOO_LONG:
                raise
            _note_failure(self.kind, work, error)
        except Exception as error:  # noqa: BLE001 - what is wrong with one keeps back nobody else's
            _note_failure(self.kind, work, error)


def _note_failure(kind: str, work: Work, error: Exception) -> None:
    work.meter.failed(kind)
    facts = facts_of(error) if isinstance(error, StoaError) else {"error": type(error).__name__}
    log.warning("something that is due does not go", kind=kind, **facts)


@dataclass(frozen=True, slots=True)
class SharedDuty:
    """What is nobody's: dropped by the maintenance role itself."""

    kind: str
    statement: DropStatement
    after: tuple[float, ...] = ()

    async def perform(self, work: Work) -> None:
        """Drop what is due, until there is none or the turn is over."""
        turn = Turn(work.turn_seconds)
        first = True
        while not turn.is_over:
            gone = await paced(work.upkeep.drop(self.statement, work.rows, *self.after))
            if first:
                work.meter.found(self.kind, gone.overdue_seconds)
                first = False
            work.meter.dropped(self.kind, gone.rows)
            if gone.rows < work.rows:
                return


async def paced(batch: Awaitable[T]) -> T:
    """Do a batch, and then nothing for as long as it took."""
    clock = asyncio.get_running_loop().time
    began = clock()
    result = await batch
    await asyncio.sleep(clock() - began)
    return result


async def in_peace(duty: Duty, work: Work) -> None:
    """Do one duty; if it fails, the others are done all the same, and it is tried again later."""
    try:
        await duty.perform(work)
    except StoaError as error:
        work.meter.failed(duty.kind)
        log.warning("retention failed", kind=duty.kind, **facts_of(error))
    except Exception:
        work.meter.failed(duty.kind)
        log.exception("retention broke", kind=duty.kind)
