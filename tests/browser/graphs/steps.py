"""A conversation that takes three steps to answer, and says something in each."""

from __future__ import annotations

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph

STEPS = 3


def step(state: MessagesState) -> dict[str, list[AIMessage]]:
    """Say which step this is."""
    return {"messages": [AIMessage(f"Step {_taken(state) + 1}.")]}


def _taken(state: MessagesState) -> int:
    return sum(message.type == "ai" for message in state["messages"])


graph = StateGraph(MessagesState)
graph.add_node("step", step)
graph.add_edge(START, "step")
graph.add_conditional_edges("step", lambda state: END if _taken(state) == STEPS else "step")
