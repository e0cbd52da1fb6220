"""A graph with a subgraph, that reports progress of its own."""

from __future__ import annotations

from typing import TypedDict

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph


class State(TypedDict, total=False):
    """What the graph and its subgraph share."""

    topic: str
    outline: str
    report: str


def outline(state: State) -> State:
    """Say what is being done, and do it."""
    get_stream_writer()({"doing": f"outlining {state['topic']}"})
    return {"outline": f"outline of {state['topic']}"}


def write(state: State) -> State:
    """Make the report."""
    return {"report": f"report from {state['outline']}"}


inner = StateGraph(State)
inner.add_node("outline", outline)
inner.add_edge(START, "outline")
inner.add_edge("outline", END)

graph = StateGraph(State)
graph.add_node("plan", inner.compile())
graph.add_node("write", write)
graph.add_edge(START, "plan")
graph.add_edge("plan", "write")
graph.add_edge("write", END)
