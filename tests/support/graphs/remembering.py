"""A graph that keeps things in the store, and forgets them."""

from __future__ import annotations

from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime


class State(TypedDict, total=False):
    """What to keep under which key; without a text, what to forget."""

    key: str
    text: str


async def remember(state: State, runtime: Runtime[None]) -> State:
    """Keep the text, or forget what was kept."""
    assert runtime.store is not None
    if text := state.get("text"):
        await runtime.store.aput(("notes",), state["key"], {"text": text})
    else:
        await runtime.store.adelete(("notes",), state["key"])
    return {}


graph = StateGraph(State)
graph.add_node("remember", remember)
graph.add_edge(START, "remember")
graph.add_edge("remember", END)
