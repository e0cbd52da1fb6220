"""A graph whose only node blocks a thread and never comes back."""

from __future__ import annotations

import threading
from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict, total=False):
    """Nothing that matters."""

    numbers: list[int]


def block(state: State) -> State:
    """Wait for what never happens."""
    threading.Event().wait()
    return state


graph = StateGraph(State)
graph.add_node("block", block)
graph.add_edge(START, "block")
graph.add_edge("block", END)
