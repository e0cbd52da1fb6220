"""A graph that counts its steps: for ever, or until told."""

from __future__ import annotations

from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict, total=False):
    """How far it has come, and how far it should."""

    n: int
    until: int


def step(state: State) -> State:
    """Count one."""
    return {"n": state.get("n", 0) + 1}


graph = StateGraph(State)
graph.add_node("step", step)
graph.add_edge(START, "step")
graph.add_conditional_edges(
    "step", lambda state: END if state["n"] >= state.get("until", 1_000_000) else "step"
)
