"""Seats for the model calls of one worker: asked for, waited for, given back.

A call that has to wait is woken when it is given a seat: at once where this worker's own calls
made room, by a notification otherwise, by looking now and then if that was lost.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID, uuid4

import structlog
from tenacity import (
    AsyncRetrying,
    retry_if_exception_type,
    stop_after_delay,
    stop_never,
    wait_random_exponential,
)

from app.logging import facts_of
from app.models.errors import ModelMissing, OllamaUnreachable
from app.models.usage import NOTHING, Usage
from tenancy.database.engine import DatabaseUnavailable
from tenancy.errors import StoaError, TokenBudgetExhausted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tenacity import RetryCallState
    from tenacity.stop import stop_base

    from tenancy.principal import ClaimedRun, UserId
    from tenancy.scheduler.limits import Limits
    from tenancy.scheduler.seats import Asked, PoolFailure, Seat, SeatDatabase

log = structlog.get_logger(__name__)

POLL_SECONDS = 1.0
AWAY_SECONDS = 10.0
"""How long a call waits for a database that is away. Its place in the queue is kept meanwhile."""
_END_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class HeldSeat:
    """A seat, and the call that has it."""

    run: ClaimedRun
    call_id: UUID
    model: str
    seat: Seat


class Seats(Protocol):
    """Where model calls get their seats."""

    async def take(self, run: ClaimedRun, model: str) -> HeldSeat:
        """Wait for a seat."""
        ...

    def settle(
        self, held: HeldSeat, usage: Usage, failure: PoolFailure | None = None
    ) -> asyncio.Future[None]:
        """Give a seat back, whatever it takes; need not be waited for."""
        ...


class SeatKeeper:
    """Takes and settles seats for the runs of one worker.

    Args:
        worker_id: whose runs they are.
        database: the scheduler.
        limits: the service's own, for whom no others were set.
        announce: tells another worker that a call of its runs was given a seat.
        wait_seconds: how long a call waits for a model none of whose pools works.
        poll_seconds: how often a call that waits looks for itself.
    """

    def __init__(
        self,
        worker_id: UUID,
        database: SeatDatabase,
        limits: Limits,
        announce: Callable[[UUID], None],
        wait_seconds: float,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._worker_id = worker_id
        self._database = database
        self._limits = limits
        self._announce = announce
        self._wait_seconds = wait_seconds
        self._poll_seconds = poll_seconds
        self._waiting: dict[UUID, asyncio.Event] = {}
        self._settling: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Nothing to begin with."""

    async def stop(self) -> None:
        """Give back what is still being given back; the rest returns with the worker's lease."""
        if self._settling:
            _, late = await asyncio.wait(self._settling, timeout=_END_SECONDS)
            for task in late:
                task.cancel()

    async def take(self, run: ClaimedRun, model: str) -> HeldSeat:
        """Wait for a seat for one call.

        Raises:
            LeaseLost: the run is not this worker's any more.
            ModelMissing: no pool has this model.
            OllamaUnreachable: none that has it has worked for some time.
            TokenBudgetExhausted: the user has used up the tokens of the day or the month.
            DatabaseUnavailable: Postgres stays away.
        """
        call_id = uuid4()
        self._waiting[call_id] = asyncio.Event()
        try:
            seat = await self._wait_for_seat(run, call_id, model)
        except BaseException:
            # It may have been given one, or be about to.
            self._settle_soon(run, call_id, model, NOTHING, None)
            raise
        finally:
            del self._waiting[call_id]
        return HeldSeat(run, call_id, model, seat)

    def settle(
        self, held: HeldSeat, usage: Usage, failure: PoolFailure | None = None
    ) -> asyncio.Future[None]:
        """Give a seat back, charged for what was used; ``failure`` is what was its pool's."""
        if failure is not None:
            log.warning("a model server failed", pool=held.seat.pool, failure=failure)
        return self._settle_soon(held.run, held.call_id, held.model, usage, failure)

    def hear(self, payload: str | None) -> None:
        """Calls were given seats: wake those that are this worker's. None: any may have been."""
        woken = self._waiting if payload is None else map(UUID, payload.split(","))
        for call_id in tuple(woken):
            if (event := self._waiting.get(call_id)) is not None:
                event.set()

    def tell(self, granted: Iterable[UUID]) -> None:
        """Wake calls that were given a seat, wherever they wait."""
        for call_id in granted:
            if (event := self._waiting.get(call_id)) is not None:
                event.set()
            else:
                self._announce(call_id)

    async def _wait_for_seat(self, run: ClaimedRun, call_id: UUID, model: str) -> Seat:
        clock = asyncio.get_running_loop().time
        out_since: float | None = None
        asked = await self._ask(run, call_id, model)
        while asked.seat is None:
            _raise_refusal(asked)
            if asked.outcome != "out":
                out_since = None
            elif out_since is None:
                out_since = clock()
            elif clock() - out_since >= self._wait_seconds:
                raise OllamaUnreachable
            await self._until_woken(call_id)
            asked = await _until_back(_A_WHILE)(
                self._database.take_up, run.user_id, call_id, self._limits
            )
            if asked.outcome == "gone":
                asked = await self._ask(run, call_id, model)
        return asked.seat

    async def _until_woken(self, call_id: UUID) -> None:
        """Return once the call was given a seat, or may have been without a word."""
        woken = self._waiting[call_id]
        with suppress(TimeoutError):
            async with asyncio.timeout(self._poll_seconds):
                await woken.wait()
        woken.clear()

    async def _ask(self, run: ClaimedRun, call_id: UUID, model: str) -> Asked:
        asked: Asked = await _until_back(_A_WHILE)(
            self._database.take, run, call_id, self._worker_id, model, self._limits
        )
        self.tell(asked.granted)
        return asked

    def _settle_soon(
        self,
        run: ClaimedRun,
        call_id: UUID,
        model: str,
        usage: Usage,
        failure: PoolFailure | None,
    ) -> asyncio.Task[None]:
        """In a task of its own: whoever made the call may just be cancelled."""
        settling = self._settle(run, call_id, model, usage, failure)
        task = asyncio.create_task(settling, name=f"settle {call_id}")
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)
        return task

    async def _settle(
        self,
        run: ClaimedRun,
        call_id: UUID,
        model: str,
        usage: Usage,
        failure: PoolFailure | None,
    ) -> None:
        try:
            await _until_back(_AS_LONG_AS_IT_TAKES)(
                self._settle_for_good,
                *(run.user_id, call_id, model),
                *(usage.prompt_tokens, usage.output_tokens, failure),
            )
        except StoaError as error:
            log.warning("a seat could not be given back", **facts_of(error))
        except Exception:
            log.exception("giving a seat back broke")

    async def _settle_for_good(self, user_id: UserId, call_id: UUID, *what: Any) -> None:  # noqa: ANN401 - handed on
        """Settle, wake whoever has the seat now, and see that it survives a crash of Postgres."""
        settled = await self._database.settle(user_id, call_id, *what)
        self.tell(settled.granted)
        for other in settled.others:
            self.tell(await self._database.serve(other))
        await self._database.flush()


def _raise_refusal(asked: Asked) -> None:
    if asked.outcome == "no_model" or (asked.outcome, asked.reason) == ("out", "model_missing"):
        raise ModelMissing
    if asked.outcome in ("tokens_per_day", "tokens_per_month"):
        raise TokenBudgetExhausted(asked.outcome)


_A_WHILE = stop_after_delay(AWAY_SECONDS)
_AS_LONG_AS_IT_TAKES = stop_never
"""A seat that is not given back is nobody's."""


def _until_back(stop: stop_base) -> AsyncRetrying:
    """Calls again while the database is away: what is asked of it here may be asked twice."""
    return AsyncRetrying(
        retry=retry_if_exception_type(DatabaseUnavailable),
        wait=wait_random_exponential(0.1, max=3),
        stop=stop,
        before_sleep=_log_attempt,
        reraise=True,
    )


def _log_attempt(attempt: RetryCallState) -> None:
    log.warning("the scheduler cannot be reached", attempt=attempt.attempt_number)
