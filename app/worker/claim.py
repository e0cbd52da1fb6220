"""Takes runs from the queue while there is room, and executes each in its own task.

A run that this worker holds and does not execute would stay so for as long as the worker lives. So
what ends without being settled is given back, and so is, now and then and after a claim whose
answer was lost, whatever the worker holds without knowing.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import structlog

from app import faults
from app.logging import facts_of
from app.stopping import RunStop
from app.worker.execute import RunNotBegun
from tenancy.database.engine import DatabaseUnavailable
from tenancy.errors import LeaseLost, StoaError, UserUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from app.worker.execute import RunExecutor
    from tenancy.database.crossing import DispatchDatabase
    from tenancy.database.signals import Announcer
    from tenancy.principal import ClaimedRun, UserId
    from tenancy.scheduler.limits import Limits

log = structlog.get_logger(__name__)

POLL_SECONDS = 1.0
_LOOK_EVERY = 0.2
_END_SECONDS = 8.0
"""How long runs that are cut off may take: whatever they write after it, the fence refuses."""
AWAY_SECONDS = 5.0
"""How long a run is kept whose writes the database does not take: given back at once, it would
spend its attempts on one bad moment."""
LOOK_AFTER_SECONDS = 60.0
"""How often the worker looks for runs that it holds without knowing."""


@dataclass(frozen=True, slots=True)
class RunningRun:
    """A run that this worker executes, and the way to stop it."""

    run: ClaimedRun
    stop: RunStop


class Claimer:
    """Claims when it is told that runs wait, when one of its own ends, and now and then."""

    def __init__(
        self,
        worker_id: UUID,
        dispatch: DispatchDatabase,
        executor: RunExecutor,
        announcer: Announcer,
        *,
        concurrency: int,
        model: str,
        limits: Limits,
    ) -> None:
        self._worker_id = worker_id
        self._dispatch = dispatch
        self._executor = executor
        self._announcer = announcer
        self._concurrency = concurrency
        self._model = model
        self._limits = limits
        self._wanted = asyncio.Event()
        self._running: dict[UUID, RunningRun] = {}
        self._tasks: dict[asyncio.Task[None], ClaimedRun] = {}
        self._look_at = 0.0
        self._draining = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> Mapping[UUID, RunningRun]:
        """What is being executed now, by the run's id."""
        return self._running

    async def start(self) -> None:
        """Begin to claim."""
        self._look_at = asyncio.get_running_loop().time() + LOOK_AFTER_SECONDS
        self._task = asyncio.create_task(self._claim_for_ever(), name="claimer")

    def look(self, _payload: str | None = None) -> None:
        """Something may wait in the queue."""
        self._wanted.set()

    async def drain(self, hurry: asyncio.Event, seconds: float) -> None:
        """Claim no more and let what runs come to the end of its step.

        Returns when nothing runs any more, when the time is over, or once ``hurry`` is set.
        """
        self._draining.set()
        await self._stop_claiming()
        await self._say_draining()
        faults.reach("drain.begun")
        for running in self._running.values():
            running.stop.drain()
        hurried = asyncio.create_task(hurry.wait())
        try:
            async with asyncio.timeout(seconds):
                await self._until_idle(hurried, lambda: bool(self._tasks))
        except TimeoutError:
            # A call that may change the world is never half made, as long as its time-out allows.
            await self._until_idle(hurried, self._is_finishing)
            if self._tasks:
                log.warning("steps cut off by the end of the worker", runs=len(self._tasks))
        finally:
            hurried.cancel()

    async def _until_idle(
        self, hurried: asyncio.Task[Literal[True]], is_busy: Callable[[], bool]
    ) -> None:
        while is_busy() and not hurried.done():
            await asyncio.wait(
                {hurried, *self._tasks},
                timeout=_LOOK_EVERY,
                return_when=asyncio.FIRST_COMPLETED,
            )

    def _is_finishing(self) -> bool:
        return any(running.stop.finishing for running in self._running.values())

    async def stop(self) -> None:
        """Claim no more and cut off the runs in flight; retiring the worker gives them back."""
        claiming = {self._task} if self._task is not None else set()
        for task in (*claiming, *self._tasks):  # once each: what they leave behind takes a moment
            task.cancel()
        if ending := claiming | set(self._tasks):
            _, late = await asyncio.wait(ending, timeout=_END_SECONDS)
            if late:
                log.warning("runs left to themselves", runs=len(late))

    async def let_go(self, user_id: UserId) -> None:
        """Cut off a person's runs and put them back; returns once nothing is done for them here.

        For people for whom nothing may be written: what a run has not stored by now, it never does.
        No attempt is spent, since nobody executes what is of such people.
        """
        ours = {task: run for task, run in self._tasks.items() if run.user_id == user_id}
        for task in ours:
            task.cancel()
        if ours:
            await asyncio.wait(ours)
        for run in ours.values():
            await self._give_back(run, spend=False)

    async def _stop_claiming(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _say_draining(self) -> None:
        """Take nothing more; what was claimed and not yet begun is others' at once."""
        try:
            await self._dispatch.drain_worker(self._worker_id)
            if await self._dispatch.release_runs_but(self._worker_id, self._running):
                self._announcer.run_queued()
        except StoaError as error:
            log.warning("draining could not be told", **facts_of(error))
        except Exception:
            log.exception("draining could not be told")

    async def _claim_for_ever(self) -> None:
        while True:
            self._wanted.clear()
            slots = self._concurrency - len(self._tasks)
            claimed = await self._claim(slots)
            for run in claimed:
                # After a crash of Postgres a run may be claimed anew under the same fence.
                known = self._running.get(run.run_id)
                if known is None or known.run != run:
                    self._begin(run)
            if len(claimed) < slots or slots == 0:
                await self._wait()

    async def _claim(self, slots: int) -> list[ClaimedRun]:
        if slots == 0:
            return []
        try:
            await self._give_back_unknown()
            faults.reach("claim.before")
            claimed = await self._dispatch.claim_runs(
                self._worker_id, slots, self._limits, self._model
            )
        except LeaseLost:
            return []  # the lease keeper has noticed, or is about to
        except StoaError as error:
            log.warning("claiming failed", **facts_of(error))
        except Exception:
            log.exception("claiming broke")
        else:
            if claimed:
                faults.reach("claim.after")
            return claimed
        self._look_at = 0.0  # the answer may have been lost, not the claim
        return []

    async def _give_back_unknown(self) -> None:
        now = asyncio.get_running_loop().time()
        if now < self._look_at:
            return
        if released := await self._dispatch.release_runs_but(self._worker_id, self._running):
            log.warning("runs given back whose claim was not answered", runs=released)
        self._look_at = now + LOOK_AFTER_SECONDS

    def _begin(self, run: ClaimedRun) -> None:
        running = RunningRun(run, RunStop())
        self._running[run.run_id] = running
        task = asyncio.create_task(self._execute(running), name=f"execute {run.run_id}")
        self._tasks[task] = run
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        self._wanted.set()

    async def _execute(self, running: RunningRun) -> None:
        run = running.run
        structlog.contextvars.bind_contextvars(run_id=str(run.run_id))
        try:
            await self._execute_or_give_back(running)
        finally:
            if self._running.get(run.run_id) is running:
                del self._running[run.run_id]

    async def _execute_or_give_back(self, running: RunningRun) -> None:
        run = running.run
        try:
            is_settled = await self._executor.execute(run, running.stop)
        except LeaseLost:  # or so it seems: giving back changes nothing if it is somebody else's
            log.info("run lost", fence=run.fence)
        except RunNotBegun as error:
            log.warning("run not begun", **facts_of(error))
            await self._wait_out(running)
            await self._give_back(run, spend=False)
            return
        except UserUnavailable:  # suspended, or leaving: nobody claims it as long as they are
            log.info("run of an unavailable person given back")
            await self._give_back(run, spend=False)
            return
        except DatabaseUnavailable as error:
            log.warning("run given back", **facts_of(error))
            await self._wait_out(running)
        except StoaError as error:
            log.warning("run given back", **facts_of(error))
        except Exception:
            log.exception("run given back")
        else:
            if not is_settled:
                await self._give_back(run, spend=False)
            return
        await asyncio.sleep(POLL_SECONDS)  # or one bad moment would use up every attempt
        await self._give_back(run, spend=True)

    async def _wait_out(self, running: RunningRun) -> None:
        """Give the database a moment, unless the run or the worker is to stop."""
        stops = {
            asyncio.create_task(running.stop.cancelled.wait()),
            asyncio.create_task(self._draining.wait()),
        }
        try:
            await asyncio.wait(stops, timeout=AWAY_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for stop in stops:
                stop.cancel()

    async def _give_back(self, run: ClaimedRun, *, spend: bool) -> None:
        """Put back a run that is not settled: nobody else may, while this worker lives."""
        while True:
            try:
                released = await self._dispatch.release_run(run, spend=spend)
            except Exception as error:  # noqa: BLE001 - as long as it takes
                log.warning("giving back failed", error=type(error).__name__)
                await asyncio.sleep(POLL_SECONDS)
            else:
                if released:
                    self._announcer.run_queued()
                return

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(POLL_SECONDS):
                await self._wanted.wait()
        except TimeoutError:
            pass
