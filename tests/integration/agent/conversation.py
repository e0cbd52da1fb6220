"""A thread of the agent, driven as the worker drives it, and tools that a test holds back."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphDrained
from langgraph.pregel import Pregel

from app.stopping import RunStop
from app.tools.calls import AgentTool

Graph = Pregel[Any, Any, Any, Any]
CALL_SECONDS = 60.0
THREAD: RunnableConfig = {"configurable": {"thread_id": "t"}}


class Run:
    """One run under way."""

    def __init__(self, graph: Graph, given: Any, steps: int) -> None:
        self.stop = RunStop()
        self.streamed: list[BaseMessage] = []
        self.task = asyncio.create_task(self._drive(graph, given, steps))
        self._arrivals: dict[str, asyncio.Event] = {}

    async def arrival(self, text: str) -> None:
        """Wait until a message, or a part of one, with this text is streamed."""
        await self._arrival(text).wait()

    def _arrival(self, text: str) -> asyncio.Event:
        return self._arrivals.setdefault(text, asyncio.Event())

    async def _drive(self, graph: Graph, given: Any, steps: int) -> None:
        parts = graph.astream(
            given,
            {**THREAD, "recursion_limit": steps},
            stream_mode="messages",
            durability="sync",
            control=self.stop,
        )
        async for message, *_ in parts:
            assert isinstance(message, BaseMessage)
            self.streamed.append(message)
            self._arrival(message.text).set()

    async def is_drained(self) -> bool:
        """Wait for the end; tell whether it came before the graph's."""
        try:
            await self.task
        except GraphDrained:
            return True
        return False


@dataclass
class Conversation:
    """One thread."""

    graph: Graph

    def say(self, text: str, *, steps: int = 25) -> Run:
        """Send a message."""
        return Run(self.graph, {"messages": [HumanMessage(text)]}, steps)

    def go_on(self) -> Run:
        """Send nothing."""
        return Run(self.graph, None, 25)

    async def messages(self) -> list[BaseMessage]:
        """What the thread holds."""
        state = await self.graph.aget_state(THREAD)
        held: list[BaseMessage] = state.values["messages"]
        return held

    async def last(self) -> AIMessage:
        """The last message, which is the model's."""
        message = (await self.messages())[-1]
        assert isinstance(message, AIMessage)
        return message

    async def next(self) -> tuple[str, ...]:
        """The nodes that an empty run would go on with."""
        state = await self.graph.aget_state(THREAD)
        return state.next


@dataclass
class Held:
    """A call that has begun and waits for the test."""

    begun: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)
    cut_off: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class Workshop:
    """Tools whose calls wait until the test lets them go on, by name."""

    effects: list[str] = field(default_factory=list)
    _held: dict[str, Held] = field(default_factory=dict)

    def call(self, name: str) -> Held:
        """The call with this name."""
        return self._held.setdefault(name, Held())

    def tools(self) -> list[AgentTool]:
        """One that only reads, one that changes something, one that fails."""

        async def look_up(name: str) -> str:
            """Look something up."""
            await self._wait(name)
            return f"{name} was found"

        async def change(name: str) -> str:
            """Change something."""
            await self._wait(name)
            self.effects.append(name)
            return f"{name} was changed"

        async def fail(name: str) -> str:
            """Fail."""
            raise RuntimeError(f"secret of {name}")

        return [
            AgentTool.from_function(look_up, read_only=True, timeout_seconds=CALL_SECONDS),
            AgentTool.from_function(change, read_only=False, timeout_seconds=CALL_SECONDS),
            AgentTool.from_function(fail, read_only=True, timeout_seconds=CALL_SECONDS),
        ]

    async def _wait(self, name: str) -> None:
        held = self.call(name)
        held.begun.set()
        try:
            await held.go.wait()
        except asyncio.CancelledError:
            held.cut_off.set()
            raise
