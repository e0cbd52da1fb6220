"""What an owner changes about a thread's state by hand, through the graph that it is of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog
from langgraph.errors import InvalidUpdateError
from langgraph.graph import END, START
from langgraph.graph.state import CompiledStateGraph

from app.agent.graphs import AGENT
from app.runs.input_rules import check_agent_input, with_removals
from app.runs.thread_graphs import graph_of
from app.runs.thread_size import require_room
from tenancy.checkpoints.state_saver import StateSaver
from tenancy.errors import CheckpointNotFound, InvalidInput, StoaError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from langchain_core.runnables import RunnableConfig
    from langgraph.pregel import Pregel

    from app.agent.graphs import GraphCatalogue
    from tenancy.checkpoints.pool import CheckpointPool
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class StateChange:
    """What to change, and from where."""

    values: Mapping[str, Any] | None
    """What the node would have returned; ``input_rules`` has passed it. None changes no value."""
    as_node: str | None = None
    """Whose change it is to be, and so what comes next. None: whose turn was last."""
    checkpoint_id: str | None = None
    """The state to change. None: the newest one."""


class StateUpdates:
    """Changes states. It executes no node; a graph's reducers and edges are its own."""

    def __init__(
        self, database: TenantDatabase, pool: CheckpointPool, graphs: GraphCatalogue
    ) -> None:
        self._database = database
        self._pool = pool
        self._graphs = graphs

    async def apply(self, owner: Owner, thread_id: UUID, change: StateChange) -> str:
        """Make a new state of an earlier one, and return its checkpoint's id.

        The checkpoint carries no run's id: it is nobody's input, so the next run applies its own,
        and no earlier run takes it for what it had applied already.

        Raises:
            ThreadNotFound: the user has no such thread.
            CheckpointNotFound: the thread has no such checkpoint.
            AssistantNotFound: the thread's graph is not there any more.
            ThreadTooLarge: the thread holds too much already for values as large as these.
            ThreadBusy: a run holds the thread, or its state has changed meanwhile.
            InvalidInput: the graph has no such node, or cannot take the values.
        """
        async with self._database.reading(owner) as tx:
            graph_id = await graph_of(tx, thread_id)
        await require_room(self._database, owner, thread_id, change.values)
        saver = StateSaver(self._pool, self._database, owner)
        graph = self._graphs.get(graph_id).copy(update={"checkpointer": saver})
        if graph_id == AGENT and change.values is not None:
            check_agent_input(change.values, "values")
        if change.as_node is not None and change.as_node not in (*graph.nodes, END):
            raise InvalidInput("`as_node` is not a node of this thread's graph.")
        _check_keys(graph, change)
        head = await saver.aget_tuple(_config(thread_id))
        head_id = None if head is None else str(head.config["configurable"]["checkpoint_id"])
        base = _config(thread_id, change.checkpoint_id or head_id)
        if change.checkpoint_id is not None and await saver.aget_tuple(base) is None:
            raise CheckpointNotFound
        base["metadata"] = {"graph_id": graph_id}
        changed = await _changed(graph, base, change)
        await saver.write(head_id)
        return str(changed["configurable"]["checkpoint_id"])


def _check_keys(graph: Pregel[Any, Any, Any, Any], change: StateChange) -> None:
    """Refuse keys that the graph would drop without a word.

    Raises:
        InvalidInput: there is one.
    """
    if not isinstance(graph, CompiledStateGraph):
        return
    builder = graph.builder
    is_input = change.as_node == START
    taken = set(builder.schemas[builder.input_schema] if is_input else builder.channels)
    if "__root__" not in taken and not taken.issuperset(change.values or ()):
        raise InvalidInput("`values` has a key that the thread's graph does not take.")


async def _changed(
    graph: Pregel[Any, Any, Any, Any], base: RunnableConfig, change: StateChange
) -> RunnableConfig:
    """Let the graph apply a change. What its code says of it may quote people: nobody is told."""
    values = None if change.values is None else with_removals(change.values)
    try:
        return await graph.aupdate_state(base, values, change.as_node)
    except StoaError:
        raise
    except InvalidUpdateError:
        raise InvalidInput(
            "The thread's graph cannot take this change. Say in `as_node` whose it is."
        ) from None
    except Exception as error:  # noqa: BLE001 - reducers and edges may raise anything
        log.warning("a graph refused a change of state", error=type(error).__name__)
        raise InvalidInput("The thread's graph cannot take these values.") from None


def _config(thread_id: UUID, checkpoint_id: str | None = None) -> RunnableConfig:
    configurable = {"thread_id": str(thread_id), "checkpoint_ns": ""}
    if checkpoint_id is not None:
        configurable["checkpoint_id"] = checkpoint_id
    return {"configurable": configurable}
