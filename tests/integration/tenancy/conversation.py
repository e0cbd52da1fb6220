"""A thread of the built-in agent's state, and runs on it as a worker would execute them."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

import asyncpg
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from app.agent.state import AgentState
from app.runs.events import settle_run
from tenancy.checkpoints.pool import CheckpointPool, Fence
from tenancy.checkpoints.saver import TenantReader, TenantSaver
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import ClaimedRun, Principal
from tenancy.run_states import RunState
from tests.support.tenancy import claimed_run

TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")


class Conversation:
    """A thread of the built-in agent's state, and runs on it that get as far as they are let."""

    def __init__(
        self,
        pool: CheckpointPool,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        superuser: asyncpg.Connection,
        person: Principal,
        thread_id: UUID,
    ) -> None:
        self.pool = pool
        self.tenants = tenants
        self.dispatch = dispatch
        self.superuser = superuser
        self.person = person
        self.thread_id = thread_id
        self.prompts: list[list[str]] = []
        self.answering = asyncio.Event()
        self.go = asyncio.Event()
        self.go.set()

    def step_ended(self) -> None:
        pass

    def committed(self, *what: Any) -> None:
        pass

    def failed(self, error: BaseException) -> None:
        pass

    async def claim(self) -> ClaimedRun:
        return await claimed_run(self.tenants, self.dispatch, self.person, self.thread_id)

    async def turn(
        self,
        run: ClaimedRun,
        said: str | None,
        kind: type[TenantSaver],
        checkpoint_id: str | None = None,
    ) -> None:
        """Execute a run as a worker would, from an earlier state if named; it keeps its claim."""
        saver = kind(
            self.pool,
            self.tenants,
            run,
            Fence(run.run_id, run.fence),
            self.thread_id,
            self,
        )
        told = {"messages": [HumanMessage(said, id=str(uuid4()))]} if said else None
        config = self.config
        if checkpoint_id is not None:
            config["configurable"]["checkpoint_id"] = checkpoint_id
        try:
            await self.graph(saver).ainvoke(
                told,
                {**config, "metadata": {"run_id": str(run.run_id)}},
                durability="sync",
            )
        finally:
            await saver.close()

    async def say(self, said: str | None) -> None:
        """A whole run; with nothing said, one that goes on with what was left."""
        run = await self.claim()
        await self.turn(run, said, TenantSaver)
        assert await settle_run(self.tenants, run, RunState.SUCCESS, 1, []) == RunState.SUCCESS

    async def messages(self) -> list[str]:
        """What a reader finds in the thread."""
        reader = TenantReader(self.pool, self.tenants, self.person)
        state = await self.graph(reader).aget_state(self.config)
        return [message.content for message in state.values.get("messages", [])]

    async def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every row of everybody's threads, as it is."""
        return {
            table: [
                tuple(row)
                for row in await self.superuser.fetch(f"SELECT * FROM {table} t ORDER BY t")
            ]
            for table in TABLES
        }

    @property
    def config(self) -> Any:
        return {"configurable": {"thread_id": str(self.thread_id), "checkpoint_ns": ""}}

    def graph(self, saver: Any) -> Any:
        graph = StateGraph(AgentState)
        graph.add_node("model", self._inner())
        graph.add_edge(START, "model")
        graph.add_edge("model", END)
        return graph.compile(checkpointer=saver)

    def _inner(self) -> CompiledStateGraph[Any, Any, Any, Any]:
        """The answer comes from a graph within the graph, with checkpoints of its own."""
        graph = StateGraph(AgentState)
        graph.add_node("answer", self._answer)
        graph.add_edge(START, "answer")
        graph.add_edge("answer", END)
        return graph.compile()

    async def _answer(self, state: AgentState) -> dict[str, Any]:
        self.prompts.append([str(message.content) for message in state["messages"]])
        self.answering.set()
        await self.go.wait()
        return {"messages": [AIMessage(f"to {state['messages'][-1].content}", id=str(uuid4()))]}
