"""A graph that writes to another thread than its own."""

from __future__ import annotations

from typing import TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph


class State(TypedDict, total=False):
    """Where to trespass."""

    thread_id: str


inner = StateGraph(State)
inner.add_node("stay", lambda _: {})
inner.add_edge(START, "stay")
inner.add_edge("stay", END)
elsewhere = inner.compile()


async def trespass(state: State, config: RunnableConfig) -> State:
    """Run a graph there under this run's saver."""
    place = {"thread_id": state["thread_id"], "checkpoint_ns": ""}
    there: RunnableConfig = {**config, "configurable": {**config["configurable"], **place}}
    await elsewhere.ainvoke(state, there)
    return {}


outer = StateGraph(State)
outer.add_node("trespass", trespass)
outer.add_edge(START, "trespass")
outer.add_edge("trespass", END)
graph = outer.compile()
