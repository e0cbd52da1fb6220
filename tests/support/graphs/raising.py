"""A graph that fails, with an exception that quotes what a person wrote."""

from __future__ import annotations

from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict, total=False):
    """Numbers, from which the exception's words are made: the request doesn't hold them."""

    numbers: list[int]


def fail(state: State) -> State:
    """Raise; the text is nowhere but in the exception."""
    raise RuntimeError("secret-" + "-".join(str(number) for number in state["numbers"]))


graph = StateGraph(State)
graph.add_node("fail", fail)
graph.add_edge(START, "fail")
graph.add_edge("fail", END)
