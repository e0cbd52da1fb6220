"""One attempt's way through the graph: where it starts, what it streams, and what it asks."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

from langgraph.types import Command

from app import faults
from app.agent.graphs import AGENT
from app.runs.events import CheckpointRef, Event
from app.runs.referenced import persisted_channels, values_at
from app.runs.wire import to_json
from app.worker.begin import answers_that_are_due, go_on_from, run_config, thread_config
from app.worker.decisions import answers_from, rows_of
from app.worker.parts import langgraph_modes
from app.worker.repair import PartialAnswer, repair_thread
from app.worker.taps import TICK, Taps
from tenancy.checkpoints.pool import Fence
from tenancy.checkpoints.store import TenantStore
from tenancy.errors import CheckpointNotFound

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from langchain_core.runnables import RunnableConfig
    from langgraph.pregel import Pregel
    from langgraph.types import StateSnapshot

    from app.stopping import RunStop
    from app.worker.begin import LoadedRun
    from app.worker.decisions import Row
    from app.worker.parts import Part
    from app.worker.services import ExecutionServices
    from app.worker.steps import StepBudget
    from app.worker.tool_count import ToolCount
    from app.worker.writer import EventWriter
    from tenancy.checkpoints.saver import TenantSaver


class Drive:
    """Drives one claimed run's graph, through a saver and a writer that carry the run's fence."""

    def __init__(
        self,
        services: ExecutionServices,
        loaded: LoadedRun,
        stop: RunStop,
        steps: StepBudget,
        saver: TenantSaver,
        writer: EventWriter,
        tools: ToolCount,
    ) -> None:
        self._services = services
        self._loaded = loaded
        self._stop = stop
        self._steps = steps
        self._saver = saver
        self._writer = writer
        self._tools = tools
        self.partial = PartialAnswer()
        """What was streamed of an answer that is not stored yet."""
        self.asked: list[Row] = []
        """What the built-in graph waits for."""

    async def run(self) -> None:
        """Run the graph until it ends, waits, or is stopped.

        Raises:
            CheckpointNotFound: what it was to begin at is gone.
        """
        graph = bound_graph(self._services, self._loaded, self._saver)
        self._writer.refer_to(self._saver, persisted_channels(graph))
        request = self._loaded.request
        graph_input, config = await self._start(graph)
        taps = Taps(
            langgraph_modes(request.stream_modes),
            subgraphs=request.stream_subgraphs,
            take=self._take_part,
            bounds=self._writer,
        )
        ticks = graph.astream(
            graph_input,
            taps.tapped(config, graph.store),
            context=request.context,
            stream_mode=TICK,
            durability="sync",
            control=self._stop,
        )
        async with aclosing(cast("AsyncGenerator[Any]", ticks)):
            async for _ in ticks:
                await self._writer.room()
        if self._saver.is_interrupted:
            await self._take_interrupts(graph)

    def _take_part(self, part: Part) -> None:
        if not self._stop.heeded:
            self.partial.follow(part)
        self._writer.offer_part(part)
        if part[1] == "messages":
            faults.reach("token.first")

    async def _start(self, graph: Pregel[Any, Any, Any, Any]) -> tuple[Any, RunnableConfig]:
        """The input and configuration of this attempt."""
        # Its own count, which subgraphs have as well, begins again with each attempt, and fails a
        # graph that ends with the last step: one more, and the count here comes first.
        config = run_config(self._loaded, self._steps.limit + 1, self._tools)
        has_begun = False
        given, answers = self._given_answers(), {}
        if not self._loaded.is_first:
            has_waited = bool(given)
            head = await graph.aget_state(thread_config(self._loaded), subgraphs=has_waited)
            has_begun = go_on_from(config, head, has_waited=has_waited)
            answers = answers_that_are_due(given, head)
            await self._tell_values(graph, head)
            self._steps.check()
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
            self.asked = rows_of(state.interrupts, self._services.agent_version)
        if "values" not in self._loaded.request.stream_modes:
            return
        asked = [{"value": each.value, "id": each.id} for each in state.interrupts]
        self._writer.emit(Event("values", to_json({**state.values, "__interrupt__": asked})))


def bound_graph(
    services: ExecutionServices, loaded: LoadedRun, saver: TenantSaver
) -> Pregel[Any, Any, Any, Any]:
    """The run's graph with what it stores bound to its user and its fence."""
    run = loaded.run
    fence = Fence(run.run_id, run.fence)
    store = TenantStore(services.pool, run.user_id, fence=fence, limits=services.allowed)
    graph = services.graphs.get(loaded.graph_id)
    return graph.copy(update={"checkpointer": saver, "store": store})
