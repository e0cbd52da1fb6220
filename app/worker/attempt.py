"""One attempt at one run: its saver, its writer, and the task that drives the graph."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import structlog
from langgraph.errors import GraphDrained
from langgraph.types import Command

from app import faults
from app.agent.answer import INCOMPLETE, STOPPED
from app.agent.equipment import Equipment
from app.agent.graphs import AGENT
from app.logging import place_of
from app.models.scope import RunScope
from app.runs.events import CheckpointRef, Event
from app.runs.referenced import persisted_channels, values_at
from app.runs.wire import to_json
from app.stopping import end_task, take_error
from app.worker.begin import (
    answers_that_are_due,
    go_on_from,
    run_config,
    step_limit,
    thread_config,
)
from app.worker.decisions import answers_from, rows_of
from app.worker.follow_stop import STOP_SECONDS, StopFollower
from app.worker.outcome import (
    CANCELLED,
    DRAINED,
    SUCCEEDED,
    TIMED_OUT,
    TOO_MANY_STEPS,
    WAITING,
    WORKER_LOST,
    Outcome,
    failure_of,
)
from app.worker.parts import langgraph_modes
from app.worker.repair import PartialAnswer, repair_thread
from app.worker.tool_count import ToolCount, count_tool_calls
from app.worker.writer import EventWriter
from tenancy.checkpoints.pool import Fence
from tenancy.checkpoints.saver import TenantSaver
from tenancy.checkpoints.store import TenantStore
from tenancy.database.engine import DatabaseUnavailable
from tenancy.errors import CheckpointNotFound, LeaseLost

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from langchain_core.runnables import RunnableConfig
    from langgraph.pregel import Pregel
    from langgraph.types import StateSnapshot

    from app.agent.graphs import GraphCatalogue
    from app.models.access import ModelAccess
    from app.stopping import RunStop
    from app.worker.begin import LoadedRun
    from app.worker.decisions import Row
    from app.worker.equip import Outfitter
    from app.worker.parts import Part
    from tenancy.checkpoints.pool import CheckpointPool
    from tenancy.database.signals import Announcer
    from tenancy.database.tenant import TenantDatabase
    from tenancy.scheduler.limits import Limits

log = structlog.get_logger(__name__)

STOPPED_MARK = {INCOMPLETE: STOPPED}


@dataclass(frozen=True, slots=True)
class ExecutionLimits:
    """How long and how often a run may be tried, and how many steps it may take."""

    run_seconds: float
    max_attempts: int
    recursion_limit: int
    approval_seconds: float
    """How long a person has to decide what a run asks of them."""


@dataclass(frozen=True, slots=True)
class ExecutionServices:
    """What every attempt works with."""

    database: TenantDatabase
    pool: CheckpointPool
    graphs: GraphCatalogue
    models: ModelAccess
    announcer: Announcer
    limits: ExecutionLimits
    allowed: Limits
    """What a person may use for whom no other limits were set."""
    outfitter: Outfitter
    agent_version: str
    """Of the built-in graph."""


class Attempt:
    """Drives one claimed run's graph. Everything that it writes carries the run's fence."""

    def __init__(self, services: ExecutionServices, loaded: LoadedRun, stop: RunStop) -> None:
        self._services = services
        self._loaded = loaded
        self._stop = stop
        self._failure: BaseException | None = None
        self._broken = asyncio.Event()
        self._steps_left = self._allowed_steps()
        self._partial = PartialAnswer()
        self._asked: list[Row] = []
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
            DatabaseUnavailable: Postgres stayed away longer than it is worth waiting.
        """
        if self._loaded.cancel_requested:
            await self._repair()
            return CANCELLED
        if self._loaded.attempts_spent >= self._services.limits.max_attempts:
            return WORKER_LOST
        task = asyncio.create_task(self._drive(), name=f"run {self._loaded.run.run_id}")
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
        asked = self._asked if outcome is WAITING else []
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
        self._steps_left -= 1
        if self._steps_left <= 0:
            self._stop.request_drain("steps")  # LangGraph looks whether it is done first

    def committed(self) -> None:
        """Writes of the saver's are committed."""
        self._writer.checkpoints_changed()
        faults.reach("checkpoint.after")

    def failed(self, error: BaseException) -> None:
        """A write failed for good: end the graph, which would go on to its last node."""
        self._failure = self._failure or error
        self._broken.set()

    async def _drive(self) -> None:
        with self._scope.entered():
            equipped = await self._equip()
            with equipped.entered():
                await self._run_graph()

    async def _equip(self) -> Equipment:
        """What the built-in agent works with; operators' graphs bring their own."""
        loaded = self._loaded
        if loaded.graph_id != AGENT:
            return Equipment()
        decided = {row["server"] for row in loaded.decisions if row["server"] is not None}
        equipped = await self._services.outfitter.equip(loaded.run, loaded.thread_id, decided)
        missing = [each for each in equipped.missing if each.is_news]
        if missing and "custom" in loaded.request.stream_modes:
            servers = [{"server": each.server, "reason": each.reason} for each in missing]
            told = {"type": "tools_missing", "servers": servers}
            self._writer.emit(Event("custom", to_json(told)))
        return equipped

    async def _run_graph(self) -> None:
        graph = self._bound_graph(self._saver)
        self._writer.refer_to(self._saver, persisted_channels(graph))
        request = self._loaded.request
        graph_input, config = await self._start(graph)
        parts = graph.astream(
            graph_input,
            config,
            context=request.context,
            stream_mode=langgraph_modes(request.stream_modes),
            subgraphs=request.stream_subgraphs,
            durability="sync",
            control=self._stop,
        )
        async for part in _with_namespace(parts, subgraphs=request.stream_subgraphs):
            if not self._stop.heeded:
                self._partial.follow(part)
            await self._writer.emit_part(part)
            if part[1] == "messages":
                faults.reach("token.first")
        if self._saver.is_interrupted:
            await self._take_interrupts(graph)

    async def _start(self, graph: Pregel[Any, Any, Any, Any]) -> tuple[Any, RunnableConfig]:
        """The input and configuration of this attempt."""
        # Its own count, which subgraphs have as well, begins again with each attempt, and fails a
        # graph that ends with the last step: one more, and the count here comes first.
        config = run_config(self._loaded, self._step_limit + 1, self._tools)
        has_begun = False
        given, answers = self._given_answers(), {}
        if not self._loaded.is_first:
            has_waited = bool(given)
            head = await graph.aget_state(thread_config(self._loaded), subgraphs=has_waited)
            has_begun = go_on_from(config, head, has_waited=has_waited)
            answers = answers_that_are_due(given, head)
            await self._tell_values(graph, head)
            if self._steps_left <= 0:
                self._stop.request_drain("steps")
        chosen = self._loaded.request.checkpoint_id is not None
        if self._loaded.follows_failure and not has_begun and not chosen:
            # Not as this run: LangGraph would take its input to be applied already.
            before = thread_config(self._loaded)
            await repair_thread(graph, {"configurable": before["configurable"]})
        await self._require_checkpoint(config)
        return Command(resume=answers) if answers else self._loaded.request.input, config

    async def _require_checkpoint(self, config: RunnableConfig) -> None:
        """Make sure that the checkpoint that the client chose is there.

        For LangGraph, one that is gone is an empty thread, on which the run would succeed.

        Raises:
            CheckpointNotFound: it was taken back after the run was accepted.
        """
        if "checkpoint_id" in config["configurable"] and not await self._saver.aget_tuple(config):
            raise CheckpointNotFound

    async def _tell_values(self, graph: Pregel[Any, Any, Any, Any], head: StateSnapshot) -> None:
        """Stream what the last attempt has left, in place of what it had half streamed."""
        if "values" not in self._loaded.request.stream_modes:
            return
        ref = CheckpointRef("", head.config["configurable"].get("checkpoint_id", ""))
        left = await values_at(graph, self._saver, self._loaded.thread_id, ref)
        if left is None or not isinstance(head.values, dict):
            self._writer.emit(Event("values", to_json(head.values)))
        else:
            shown = {name: left[name] for name in head.values if name in left}
            self._writer.emit_state(shown, ref)

    def _given_answers(self) -> Mapping[str, Any]:
        """What was answered so far, for the built-in graph by decisions on each call."""
        if self._loaded.graph_id == AGENT:
            return answers_from(self._loaded.decisions, self._services.agent_version)
        return self._loaded.answers

    async def _take_interrupts(self, graph: Pregel[Any, Any, Any, Any]) -> None:
        """Note what the built-in graph asks, and stream what any waits for.

        Beside finished siblings, LangGraph does not.
        """
        state = await graph.aget_state(thread_config(self._loaded))
        if self._loaded.graph_id == AGENT:
            self._asked = rows_of(state.interrupts, self._services.agent_version)
        if "values" not in self._loaded.request.stream_modes:
            return
        asked = [{"value": each.value, "id": each.id} for each in state.interrupts]
        self._writer.emit(Event("values", to_json({**state.values, "__interrupt__": asked})))

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
        return TOO_MANY_STEPS if self._steps_left <= 0 else DRAINED

    def _why(self, error: BaseException) -> Outcome:
        if isinstance(error, LeaseLost | DatabaseUnavailable):
            raise error
        outcome = failure_of(error)
        log.warning(
            "run failed",
            run_id=str(self._loaded.run.run_id),
            code=outcome.code,
            error=type(error).__name__,
            at=place_of(error),
        )
        return outcome

    async def _repair(self) -> None:
        """Leave the thread in order, through a saver of its own: strays of the graph's come late.

        Raises:
            LeaseLost, DatabaseUnavailable: it could not be written.
        """
        await self._saver.close()
        self._saver = self._open_saver()
        graph = self._bound_graph(self._saver)
        partial = self._partial.message(STOPPED_MARK)
        await repair_thread(graph, thread_config(self._loaded), partial, self._partial.node)

    def _open_saver(self, head: Any = None) -> TenantSaver:  # noqa: ANN401 - a database row
        services, run = self._services, self._loaded.run
        fence = Fence(run.run_id, run.fence)
        return TenantSaver(
            services.pool, services.database, run, fence, self._loaded.thread_id, self, head
        )

    def _bound_graph(self, saver: TenantSaver) -> Pregel[Any, Any, Any, Any]:
        services, run = self._services, self._loaded.run
        fence = Fence(run.run_id, run.fence)
        store = TenantStore(services.pool, run.user_id, fence=fence, limits=services.allowed)
        graph = services.graphs.get(self._loaded.graph_id)
        return graph.copy(update={"checkpointer": saver, "store": store})

    @property
    def _step_limit(self) -> int:
        return step_limit(self._loaded, self._services.limits.recursion_limit)

    def _allowed_steps(self) -> int:
        # LangGraph stores a step of its own when it applies an input.
        applying = self._loaded.request.input is not None
        return self._step_limit + applying - self._loaded.steps


async def _with_namespace(parts: AsyncIterator[Any], *, subgraphs: bool) -> AsyncIterator[Part]:
    async for part in parts:
        yield part if subgraphs else ((), *part)
