"""A graph whose only node is no coroutine: it waits for the model in a thread."""

from __future__ import annotations

from typing import Any

from langchain_ollama import ChatOllama
from langgraph.graph import END, START, MessagesState, StateGraph


def model(state: MessagesState) -> dict[str, Any]:
    """Ask, with a client of its own."""
    return {"messages": [ChatOllama(model="smollm2").invoke(state["messages"])]}


graph = StateGraph(MessagesState)
graph.add_node("model", model)
graph.add_edge(START, "model")
graph.add_edge("model", END)
