"""Graphs that walk into LangGraph's traps, and what a test sees of them from outside."""

from __future__ import annotations

import asyncio
import json
import operator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import interrupt

PAUSE_AT = 3
ANSWER = "one two three"


@dataclass
class Seen:
    """What nodes did, and what lets them go on."""

    executed: list[str] = field(default_factory=list)
    contexts: list[dict[str, Any]] = field(default_factory=list)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)
    go_slowly: asyncio.Event = field(default_factory=asyncio.Event)
    cut_off: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self) -> None:
        """Say that a node has begun, and wait until the test lets it go on."""
        self.begun.set()
        await self.go.wait()


@dataclass
class _Holder:
    """Graphs are built once, and look here for what belongs to the test that runs."""

    seen: Seen = field(default_factory=Seen)


_now = _Holder()


def look_anew() -> Seen:
    """Forget what earlier tests saw."""
    _now.seen = Seen()
    return _now.seen


class Done(TypedDict, total=False):
    """What has been done."""

    done: Annotated[list[str], operator.add]


def _step(name: str) -> Any:
    async def step(state: Done) -> Done:
        _now.seen.executed.append(name)
        return {"done": [name]}

    return step


def _three_steps() -> StateGraph[Any, Any, Any, Any]:
    graph = StateGraph(Done)
    names = ["one", "two", "three"]
    for name in names:
        graph.add_node(name, _step(name))
    graph.add_edge(START, "one")
    graph.add_edge("one", "two")
    graph.add_edge("two", "three")
    return graph


async def quick(state: Done) -> Done:
    """End when the test says so, beside a node that is slow."""
    _now.seen.executed.append("quick")
    await _now.seen.wait()
    return {"done": ["quick"]}


async def slow(state: Done) -> Done:
    """Go on for ever, or until it is cut off."""
    _now.seen.executed.append("slow")
    try:
        await _now.seen.go_slowly.wait()
    except asyncio.CancelledError:
        _now.seen.cut_off.set()
        raise
    return {"done": ["slow"]}


def _pair() -> StateGraph[Any, Any, Any, Any]:
    graph = StateGraph(Done)
    graph.add_node("quick", quick)
    graph.add_node("slow", slow)
    graph.add_edge(START, "quick")
    graph.add_edge(START, "slow")
    return graph


class Count(TypedDict, total=False):
    """How far it has come."""

    n: int


async def count(state: Count) -> Count:
    """Count one; wait at one of the steps."""
    n = state.get("n", 0) + 1
    _now.seen.executed.append(str(n))
    if n == PAUSE_AT:
        await _now.seen.wait()
    return {"n": n}


def _counting() -> StateGraph[Any, Any, Any, Any]:
    graph = StateGraph(Count)
    graph.add_node("count", count)
    graph.add_edge(START, "count")
    graph.add_edge("count", "count")
    return graph


async def ask(state: Done) -> Done:
    """Wait for a person."""
    return {"done": [str(interrupt("May I?"))]}


def _siblings() -> StateGraph[Any, Any, Any, Any]:
    graph = StateGraph(Done)
    graph.add_node("ask", ask)
    graph.add_node("sibling", _step("sibling"))
    graph.add_edge(START, "ask")
    graph.add_edge(START, "sibling")
    return graph


class Context(TypedDict, total=False):
    """What a client says beside its input."""

    word: str


async def told(state: Done, runtime: Runtime[Context]) -> Done:
    """Note what a subgraph's node is told."""
    _now.seen.contexts.append(dict(runtime.context or {}))
    await _now.seen.wait()
    return {"done": ["told"]}


def _with_context() -> StateGraph[Any, Any, Any, Any]:
    inner = StateGraph(Done, context_schema=Context)
    inner.add_node("told", told)
    inner.add_edge(START, "told")
    graph = StateGraph(Done, context_schema=Context)
    graph.add_node("inner", inner.compile())
    graph.add_edge(START, "inner")
    return graph


async def call_tool(state: MessagesState) -> dict[str, Any]:
    """Wish for a call."""
    wish = {"name": "tool", "args": {}, "id": "call-1"}
    return {"messages": [AIMessage("", id="wish", tool_calls=[wish])]}


async def tool(state: MessagesState) -> dict[str, Any]:
    """A call that takes as long as the test wants."""
    await _now.seen.wait()
    return {"messages": [ToolMessage("done", tool_call_id="call-1")]}


def _calling() -> StateGraph[Any, Any, Any, Any]:
    graph = StateGraph(MessagesState)
    graph.add_node("model", call_tool)
    graph.add_node("tools", tool)
    graph.add_edge(START, "model")
    graph.add_edge("model", "tools")
    graph.add_edge("tools", END)
    return graph


async def speak(state: MessagesState) -> dict[str, Any]:
    """Answer word by word, and return the whole under the same id."""
    model = GenericFakeChatModel(messages=iter([AIMessage(ANSWER)]))
    return {"messages": [await model.ainvoke(state["messages"])]}


def _speaking() -> StateGraph[Any, Any, Any, Any]:
    graph = StateGraph(MessagesState)
    graph.add_node("speak", speak)
    graph.add_edge(START, "speak")
    return graph


three_steps = _three_steps()
pair = _pair()
counting = _counting()
siblings = _siblings()
with_context = _with_context()
calling = _calling()
speaking = _speaking()

_NAMES = (
    *("three_steps", "pair", "counting", "siblings"),
    *("with_context", "calling", "speaking"),
)


def declare(folder: Path) -> Path:
    """Write a ``langgraph.json`` of these graphs."""
    (folder / "graphs.py").write_text(f"from {__name__} import {', '.join(_NAMES)}\n")
    declared = folder / "langgraph.json"
    graphs = {name: f"./graphs.py:{name}" for name in _NAMES}
    declared.write_text(json.dumps({"graphs": graphs}))
    return declared
