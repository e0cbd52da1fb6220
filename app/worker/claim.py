"""Takes runs from the queue while there is room, and executes each in its own task.

A run that this worker holds and does not execute would stay so for as long as the worker lives. So
what ends without being settled is given back, and so is, after a claim whose answer was lost,
whatever that claim took.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from tenancy.database.signals import RUN_QUEUED, Listener
from tenancy.errors import LeaseLost, StoaError

if TYPE_CHECKING:
    from uuid import UUID

    from app.worker.execute import RunExecutor
    from tenancy.database.crossing import DispatchDatabase
    from tenancy.principal import ClaimedRun

log = structlog.get_logger(__name__)

POLL_SECONDS = 1.0


class Claimer:
    """Claims when it is told that runs wait, when one of its own ends, and now and then."""

    def __init__(
        self,
        worker_id: UUID,
        dispatch: DispatchDatabase,
        executor: RunExecutor,
        listen_dsn: str,
        *,
        concurrency: int,
        max_running_per_user: int,
    ) -> None:
        self._worker_id = worker_id
        self._dispatch = dispatch
        self._executor = executor
        self._concurrency = concurrency
        self._max_running_per_user = max_running_per_user
        self._wanted = asyncio.Event()
        self._running: dict[asyncio.Task[None], UUID] = {}
        self._answer_lost = False
        self._task: asyncio.Task[None] | None = None
        self._listener = Listener(listen_dsn, {RUN_QUEUED: lambda _: self._wanted.set()})

    async def start(self) -> None:
        """Listen for queued runs and begin to claim."""
        await self._listener.start()
        self._task = asyncio.create_task(self._claim_for_ever(), name="claimer")

    async def stop(self) -> None:
        """Claim no more and end the runs in flight; they go back to the queue."""
        await self._listener.stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _claim_for_ever(self) -> None:
        while True:
            self._wanted.clear()
            slots = self._concurrency - len(self._running)
            claimed = await self._claim(slots)
            for run in claimed:
                # After a crash of Postgres a run may be claimed anew under the same fence.
                if run.run_id not in self._running.values():
                    self._begin(run)
            if len(claimed) < slots or slots == 0:
                await self._wait()

    async def _claim(self, slots: int) -> list[ClaimedRun]:
        if slots == 0:
            return []
        try:
            await self._give_back_unknown()
            return await self._dispatch.claim_runs(
                self._worker_id, slots, self._max_running_per_user
            )
        except LeaseLost:
            return []  # the lease keeper has noticed, or is about to
        except StoaError as error:
            log.warning("claiming failed", code=error.code)
        except Exception:
            log.exception("claiming broke")
        self._answer_lost = True
        return []

    async def _give_back_unknown(self) -> None:
        if not self._answer_lost:
            return
        known = self._running.values()
        if released := await self._dispatch.release_runs_but(self._worker_id, known):
            log.warning("runs given back whose claim was not answered", runs=released)
        self._answer_lost = False

    def _begin(self, run: ClaimedRun) -> None:
        task = asyncio.create_task(self._execute(run), name=f"execute {run.run_id}")
        self._running[task] = run.run_id
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        self._wanted.set()

    async def _execute(self, run: ClaimedRun) -> None:
        try:
            await self._executor.execute(run)
        except LeaseLost:  # or so it seems: giving back changes nothing if it is somebody else's
            log.info("run lost", run_id=str(run.run_id), fence=run.fence)
        except StoaError as error:
            log.warning("run given back", run_id=str(run.run_id), code=error.code)
        except Exception:
            log.exception("run given back", run_id=str(run.run_id))
        else:
            return
        await asyncio.sleep(POLL_SECONDS)  # or one bad moment would use up every attempt
        await self._give_back(run)

    async def _give_back(self, run: ClaimedRun) -> None:
        """Put back a run that could not be settled: nobody else may, while this worker lives."""
        while True:
            try:
                await self._dispatch.release_run(run, spend=True)
            except Exception as error:  # noqa: BLE001 - as long as it takes
                log.warning(
                    "giving back failed", run_id=str(run.run_id), error=type(error).__name__
                )
                await asyncio.sleep(POLL_SECONDS)
            else:
                return

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(POLL_SECONDS):
                await self._wanted.wait()
        except TimeoutError:
            pass
