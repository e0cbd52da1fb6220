"""A graph that stops to ask a person."""

from __future__ import annotations

from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    """The question and its answer."""

    question: str
    answer: str


def ask(state: State) -> State:
    """Wait for a person."""
    return {"answer": str(interrupt({"question": state["question"]}))}


graph = StateGraph(State)
graph.add_node("ask", ask)
graph.add_edge(START, "ask")
graph.add_edge("ask", END)
