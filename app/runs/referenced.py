"""The states that events refer to, read back from their checkpoints.

What is read is what the checkpoint's channels held, through LangGraph's own way of restoring
them; not a snapshot of the thread, which has later writes in it. That way is private to the
library: it is used here only, and tested against what was streamed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from langgraph.channels.base import BaseChannel
from langgraph.channels.untracked_value import UntrackedValue
from langgraph.pregel._checkpoint import achannels_from_checkpoint
from langgraph.pregel._io import read_channels

from app.agent.graphs import AGENT
from app.runs.events import CheckpointRef
from app.runs.large_work import in_turn
from app.runs.sizes import is_large
from app.runs.state_templates import filled
from app.runs.wire import to_json
from tenancy.checkpoints.saver import TenantReader
from tenancy.errors import AssistantNotFound

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable
    from uuid import UUID

    from langchain_core.runnables import RunnableConfig
    from langgraph.pregel import Pregel

    from app.agent.graphs import GraphCatalogue
    from app.runs.events import StoredEvent
    from app.runs.runs import Run
    from tenancy.checkpoints.pool import CheckpointPool
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner


def persisted_channels(graph: Pregel[Any, Any, Any, Any]) -> frozenset[str]:
    """The channels whose values a checkpoint of the graph has."""
    return frozenset(
        name
        for name, channel in graph.channels.items()
        if isinstance(channel, BaseChannel) and not isinstance(channel, UntrackedValue)
    )


async def values_at(
    graph: Pregel[Any, Any, Any, Any], saver: TenantReader, thread_id: UUID, ref: CheckpointRef
) -> dict[str, Any] | None:
    """What the channels of a graph held at a checkpoint; None if there is no such any more."""
    config: RunnableConfig = {
        "configurable": {
            "thread_id": str(thread_id),
            "checkpoint_ns": ref.namespace,
            "checkpoint_id": ref.checkpoint_id,
        }
    }
    saved = await saver.aget_tuple(config)
    if saved is None:
        return None
    graph._migrate_checkpoint(saved.checkpoint)  # noqa: SLF001 - as the library does on reading
    channels, _ = await achannels_from_checkpoint(
        graph.channels, saved.checkpoint, saver=saver, config=saved.config
    )
    values: dict[str, Any] = read_channels(channels, list(channels))
    return values


@dataclass(frozen=True, slots=True)
class GoneEvent:
    """An event whose state is not there any more: rolled back, pruned or deleted."""

    seq: int


@dataclass(slots=True)
class _State:
    """One checkpoint's values, as JSON once they are asked for."""

    ref: CheckpointRef
    values: dict[str, Any] | None
    is_large: bool

    def part(self, key: str) -> bytes | None:
        if self.values is None or key not in self.values:
            return None
        if not isinstance(self.values[key], bytes):
            self.values[key] = to_json(self.values[key])
        part: bytes = self.values[key]
        return part


class ReferencedStates:
    """Fills in what events of a log leave out. One per web process; it keeps nothing."""

    def __init__(
        self, database: TenantDatabase, pool: CheckpointPool, graphs: GraphCatalogue
    ) -> None:
        self._database = database
        self._pool = pool
        self._graphs = graphs

    async def fill(
        self, owner: Owner, run: Run, events: Iterable[StoredEvent]
    ) -> AsyncGenerator[StoredEvent | GoneEvent, None]:
        """Yield a run's events, in order, with their states in them.

        Events that tell of the same checkpoint follow each other, so one state is kept meanwhile.
        """
        state: _State | None = None
        for event in events:
            if event.state_of is None:
                yield event
                continue
            if state is None or state.ref != event.state_of:
                state = await self._read(owner, run, event.state_of)
            yield await _filled(owner, event, state)  # held by whoever takes it, and not here too

    async def _read(self, owner: Owner, run: Run, ref: CheckpointRef) -> _State:
        try:
            graph = self._graphs.get(run.graph_id)
        except AssistantNotFound:  # taken away by the operator
            graph = self._graphs.get(AGENT)
        saver = TenantReader(self._pool, self._database, owner)
        values = await values_at(graph, saver, run.thread_id, ref)
        return _State(ref, values, is_large(values))


async def _filled(owner: Owner, event: StoredEvent, state: _State) -> StoredEvent | GoneEvent:
    if state.is_large:
        data = await in_turn(owner.user_id, filled, event.data, state.part)
    else:
        data = filled(event.data, state.part)
    return GoneEvent(event.seq) if data is None else replace(event, data=data, state_of=None)
