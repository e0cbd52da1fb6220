"""A thread's state and its earlier checkpoints, read through the graph that made them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import sqlalchemy as sa

from app.agent.graphs import AGENT
from app.runs.sizes import is_large
from app.runs.thread_graphs import graph_of
from tenancy.checkpoints.saver import TenantReader
from tenancy.errors import AssistantNotFound, CheckpointNotFound
from tenancy.tables import runs

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from langchain_core.runnables import RunnableConfig
    from langgraph.pregel import Pregel
    from langgraph.types import PregelTask, StateSnapshot

    from app.agent.graphs import GraphCatalogue
    from app.runs.runs import Run
    from tenancy.checkpoints.pool import CheckpointPool
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner

READ_AT_ONCE = 5
UNKNOWN_FAILURE = "graph_failed"
"""What a task failed with whose run is still open, or gone. Its own words may quote people."""
_SHOWN = ("thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map")


class ThreadHistory:
    """Reads states. It executes no node and writes nothing."""

    def __init__(
        self, database: TenantDatabase, pool: CheckpointPool, graphs: GraphCatalogue
    ) -> None:
        self._database = database
        self._pool = pool
        self._graphs = graphs

    async def state(
        self,
        owner: Owner,
        thread_id: UUID,
        checkpoint_id: str | None = None,
        *,
        checkpoint_ns: str = "",
        subgraphs: bool = False,
    ) -> dict[str, Any]:
        """The newest state of a thread, or the one at a checkpoint, as LangGraph's JSON.

        Values may hold messages: answer it through ``wire.to_json``.

        Raises:
            ThreadNotFound: the user has no such thread.
            CheckpointNotFound: the thread has no such checkpoint.
        """
        graph = await self._graph(owner, thread_id)
        config = _config(thread_id, checkpoint_id, checkpoint_ns)
        snapshot = await graph.aget_state(config, subgraphs=subgraphs)
        if checkpoint_id is not None and snapshot.created_at is None:
            raise CheckpointNotFound
        return await self._json(owner, snapshot)

    async def history(
        self,
        owner: Owner,
        thread_id: UUID,
        *,
        limit: int = 10,
        before: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        checkpoint_id: str | None = None,
        checkpoint_ns: str = "",
    ) -> AsyncGenerator[dict[str, Any], None]:
        """A thread's states, newest first, each as :meth:`state` gives it.

        ``before`` is a checkpoint's id: only older ones are returned. They are read as the
        caller asks for more, a few at a time while they are small: each may hold a whole
        conversation.

        Raises:
            ThreadNotFound: the user has no such thread.
        """
        graph = await self._graph(owner, thread_id)
        config = _config(thread_id, checkpoint_id, checkpoint_ns)
        at_once = 1
        while limit > 0:
            page = [
                snapshot
                async for snapshot in graph.aget_state_history(
                    config,
                    filter=dict(metadata) if metadata else None,
                    before=_config(thread_id, before, checkpoint_ns) if before else None,
                    limit=min(limit, at_once),
                )
            ]
            for snapshot in page:
                yield await self._json(owner, snapshot)
            if len(page) < at_once or checkpoint_id is not None:
                return
            limit -= len(page)
            at_once = 1 if any(is_large(state.values) for state in page) else READ_AT_ONCE
            before = page[-1].config["configurable"]["checkpoint_id"]

    async def run_values(self, owner: Owner, run: Run) -> Any:  # noqa: ANN401 - a graph's own
        """The values that a run left in its thread when it ended; empty ones if it left none."""
        snapshots = self._bound(owner, run.graph_id).aget_state_history(
            _config(run.thread_id, None, ""), filter={"run_id": str(run.run_id)}, limit=1
        )
        found = [snapshot.values async for snapshot in snapshots]
        # Not null: LangGraph's JavaScript client looks for an error in what it gets.
        return found[0] if found else {}

    async def _json(self, owner: Owner, snapshot: StateSnapshot) -> dict[str, Any]:
        if not any(task.error for task in snapshot.tasks):
            return _snapshot_json(snapshot, None)
        return _snapshot_json(snapshot, await self._failure(owner, snapshot))

    async def _failure(self, owner: Owner, snapshot: StateSnapshot) -> str:
        """The code that the run of a state failed with."""
        run_id = (snapshot.metadata or {}).get("run_id")
        if run_id is None:
            return UNKNOWN_FAILURE
        async with self._database.reading(owner) as tx:
            code = await tx.scalar(
                sa.select(runs.c.error_code).where(runs.c.run_id == UUID(str(run_id)))
            )
        return str(code or UNKNOWN_FAILURE)

    async def _graph(self, owner: Owner, thread_id: UUID) -> Pregel[Any, Any, Any, Any]:
        """The graph of the thread's last run, bound to a saver that reads this owner's rows."""
        async with self._database.reading(owner) as tx:
            graph_id = await graph_of(tx, thread_id)
        return self._bound(owner, graph_id)

    def _bound(self, owner: Owner, graph_id: str) -> Pregel[Any, Any, Any, Any]:
        try:
            graph = self._graphs.get(graph_id)
        except AssistantNotFound:  # the operator took the graph away; its values stay readable
            graph = self._graphs.get(AGENT)
        return graph.copy(update={"checkpointer": TenantReader(self._pool, self._database, owner)})


def _config(thread_id: UUID, checkpoint_id: str | None, checkpoint_ns: str) -> RunnableConfig:
    configurable = {"thread_id": str(thread_id), "checkpoint_ns": checkpoint_ns}
    if checkpoint_id is not None:
        configurable["checkpoint_id"] = checkpoint_id
    return {"configurable": configurable}


def _checkpoint_json(config: RunnableConfig | None) -> dict[str, Any] | None:
    configurable = (config or {}).get("configurable") or {}
    if not configurable.get("checkpoint_id"):
        return None
    return {name: configurable.get(name) for name in _SHOWN}


def _snapshot_json(snapshot: StateSnapshot, failure: str | None) -> dict[str, Any]:
    return {
        "values": snapshot.values,
        "next": list(snapshot.next),
        "tasks": [_task_json(task, failure) for task in snapshot.tasks],
        "metadata": snapshot.metadata or {},
        "created_at": snapshot.created_at,
        "checkpoint": _checkpoint_json(snapshot.config),
        "parent_checkpoint": _checkpoint_json(snapshot.parent_config),
        "interrupts": [_interrupt_json(interrupt) for interrupt in snapshot.interrupts],
    }


def _task_json(task: PregelTask, failure: str | None) -> dict[str, Any]:
    nested = task.state
    return {
        "id": task.id,
        "name": task.name,
        "path": list(task.path),
        "error": failure if task.error else None,
        "interrupts": [_interrupt_json(interrupt) for interrupt in task.interrupts],
        "checkpoint": _checkpoint_json(nested) if isinstance(nested, dict) else None,
        "state": _snapshot_json(nested, failure)
        if nested and not isinstance(nested, dict)
        else None,
        "result": task.result,
    }


def _interrupt_json(interrupt: Any) -> dict[str, Any]:  # noqa: ANN401 - langgraph's Interrupt
    return {"id": interrupt.id, "value": interrupt.value}
