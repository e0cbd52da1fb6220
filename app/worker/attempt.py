"""One attempt at one run: its saver, its writer, and the task that drives the graph."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import structlog
from langgraph.errors import GraphDrained

from app import faults
from app.agent.answer import INCOMPLETE, STOPPED
from app.agent.equipment import Equipment
from app.agent.graphs import AGENT
from app.agent.speakers import chosen_model
from app.logging import place_of, stack_of, tenant_reference
from app.models.scope import RunScope
from app.runs.events import Event
from app.runs.wire import to_json
from app.stopping import end_task, take_error
from app.worker.begin import thread_config
from app.worker.drive import Drive, bound_graph
from app.worker.follow_stop import STOP_SECONDS, StopFollower
from app.worker.outcome import (
    CANCELLED,
    DRAINED,
    FAILED,
    SUCCEEDED,
    TIMED_OUT,
    TOO_MANY_STEPS,
    WAITING,
    WORKER_LOST,
    Outcome,
    failure_of,
)
from app.worker.repair import repair_thread
from app.worker.steps import StepBudget
from app.worker.tool_count import ToolCount, count_tool_calls
from app.worker.writer import EventWriter
from tenancy.checkpoints.pool import Fence
from tenancy.checkpoints.saver import TenantSaver
from tenancy.database.engine import DatabaseUnavailable
from tenancy.errors import LeaseLost, UserUnavailable

if TYPE_CHECKING:
    from app.stopping import RunStop
    from app.worker.begin import LoadedRun
    from app.worker.services import ExecutionServices

log = structlog.get_logger(__name__)

STOPPED_MARK = {INCOMPLETE: STOPPED}


class Attempt:
    """Has one claimed run's graph driven, stops it where it must, and settles the run.

    Everything that it writes carries the run's fence.
    """

    def __init__(self, services: ExecutionServices, loaded: LoadedRun, stop: RunStop) -> None:
        self._services = services
        self._loaded = loaded
        self._stop = stop
        self._failure: BaseException | None = None
        self._broken = asyncio.Event()
        self._steps = StepBudget(loaded, services.limits.recursion_limit, stop)
        self._tools = ToolCount()
        self._scope = RunScope(loaded.run, services.models)
        self._saver = self._open_saver(loaded.head)
        self._writer = EventWriter(
            services.database,
            services.announcer,
            loaded.run,
            loaded.next_seq,
            loaded.request.stream_modes,
            self.failed,
        )
        self._drive = Drive(
            services, loaded, stop, self._steps, self._saver, self._writer, self._tools
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._saver.close()
        finally:
            await self._writer.stop()

    async def carry_out(self) -> Outcome:
        """Drive the graph until it ends or is stopped, and say what became of the run.

        Raises:
            LeaseLost: a write found that the run is another worker's.
            UserUnavailable: nothing may be written for its person any more, or for now.
            DatabaseUnavailable: Postgres stayed away longer than it is worth waiting.
        """
        if self._loaded.cancel_requested:
            await self._repair()
            return CANCELLED
        if self._loaded.attempts_spent >= self._services.limits.max_attempts:
            return WORKER_LOST
        task = asyncio.create_task(self._run_graph(), name=f"run {self._loaded.run.run_id}")
        task.add_done_callback(take_error)  # also where this is cut off itself
        left = self._services.limits.run_seconds - self._loaded.active_seconds
        follower = StopFollower(self._stop, left, self._writer.emit)
        following = asyncio.create_task(follower.follow(task), name="stop")
        breaking = asyncio.create_task(self._broken.wait(), name="broken")
        try:
            await asyncio.wait({task, following, breaking}, return_when=asyncio.FIRST_COMPLETED)
        finally:  # also where the worker ends, or gave up its lease
            await end_task(breaking)
            await end_task(following)
            if not task.done():
                task.cancel()
            self._scope.close()  # a thread takes no notice of its task's end
            await end_task(task, STOP_SECONDS if not task.done() else None)
            await self._scope.ended(STOP_SECONDS)
            if not task.done():
                log.warning("a graph takes no notice of its end", graph_id=self._loaded.graph_id)
        outcome = self._judge(task, timed_out=follower.timed_out)
        if not task.done() or task.cancelled():
            await self._repair()
        return outcome

    async def settle(self, outcome: Outcome) -> None:
        """Close the saver, then commit the outcome with the last events.

        Raises:
            LeaseLost, DatabaseUnavailable: it could not be committed.
        """
        await self._saver.close()
        if outcome.code is not None:
            body = {"error": outcome.code, "message": outcome.message}
            self._writer.emit(Event("error", to_json(body)))
        faults.reach("settle.before")
        asked = self._drive.asked if outcome is WAITING else []
        expire_seconds = self._services.limits.approval_seconds
        await self._writer.settle(outcome, self._tools.calls, asked, expire_seconds)
        faults.reach("settle.after")

    async def give_up(self) -> None:
        """Store what was handed in, since another attempt goes on from it."""
        await self._saver.close()
        await self._writer.flush()
        await count_tool_calls(self._services.database, self._loaded.run, self._tools.calls)

    def step_ended(self) -> None:
        """A step is about to be stored: the budget is counted by steps, over all attempts."""
        faults.reach("checkpoint.before")
        self._steps.take()

    def committed(self) -> None:
        """Writes of the saver's are committed."""
        self._writer.checkpoints_changed()
        faults.reach("checkpoint.after")

    def failed(self, error: BaseException) -> None:
        """A write failed for good: end the graph, which would go on to its last node."""
        self._failure = self._failure or error
        self._broken.set()

    async def _run_graph(self) -> None:
        with self._scope.entered():
            equipped = await self._equip()
            with equipped.entered():
                await self._drive.run()

    async def _equip(self) -> Equipment:
        """What the built-in agent works with; operators' graphs bring their own."""
        loaded = self._loaded
        if loaded.graph_id != AGENT:
            return Equipment()
        decided = {row["server"] for row in loaded.decisions if row["server"] is not None}
        speakers, chosen = self._services.graphs.speakers, chosen_model(loaded.request.config)
        model, served = speakers.model(chosen), self._services.served
        equipped = await self._services.outfitter.equip(
            loaded.run,
            loaded.thread_id,
            replace(speakers.of(chosen), prompt_tokens=await served.prompt_tokens(model)),
            decided,
            sees_images=await served.reads_images(model),
        )
        mentions = self._services.mentions.of_run(loaded.run, loaded.thread_id, equipped.tools)
        equipped = replace(equipped, mentions=mentions)
        missing = [each for each in equipped.missing if each.is_news]
        if missing and "custom" in loaded.request.stream_modes:
            servers = [{"server": each.server, "reason": each.reason} for each in missing]
            told = {"type": "tools_missing", "servers": servers}
            self._writer.emit(Event("custom", to_json(told)))
        return equipped

    def _judge(self, task: asyncio.Task[None], *, timed_out: bool) -> Outcome:
        is_cut_off = not task.done() or task.cancelled()
        error = asyncio.CancelledError() if is_cut_off else task.exception()
        if self._failure is not None:
            return self._why(self._failure)
        stopped = self._stop.cancelled.is_set()
        if error is None:
            return WAITING if self._saver.is_interrupted else SUCCEEDED
        if stopped and isinstance(error, asyncio.CancelledError | GraphDrained):
            return TIMED_OUT if timed_out else CANCELLED
        if not isinstance(error, GraphDrained):
            return self._why(error)
        if self._stop.failure is not None:
            return self._why(self._stop.failure)
        return TOO_MANY_STEPS if self._steps.is_spent else DRAINED

    def _why(self, error: BaseException) -> Outcome:
        if isinstance(error, LeaseLost | DatabaseUnavailable | UserUnavailable):
            raise error
        outcome = failure_of(error)
        about = {"code": outcome.code, "error": type(error).__name__}
        run = self._loaded.run
        about |= {"run_id": str(run.run_id), "tenant": tenant_reference(run.user_id)}
        if outcome is FAILED:  # nobody foresaw it: the one record
            log.error("run failed", stage="run", **about, stack=stack_of(error))
        else:
            log.warning("run failed", **about, at=place_of(error))
        return outcome

    async def _repair(self) -> None:
        """Leave the thread in order, through a saver of its own: strays of the graph's come late.

        Raises:
            LeaseLost, DatabaseUnavailable: it could not be written.
        """
        await self._saver.close()
        self._saver = self._open_saver()
        graph = bound_graph(self._services, self._loaded, self._saver)
        left = self._drive.partial
        await repair_thread(
            graph, thread_config(self._loaded), left.message(STOPPED_MARK), left.node
        )

    def _open_saver(self, head: Any = None) -> TenantSaver:  # noqa: ANN401 - a database row
        services, run = self._services, self._loaded.run
        fence = Fence(run.run_id, run.fence)
        return TenantSaver(
            services.pool, services.database, run, fence, self._loaded.thread_id, self, head
        )
