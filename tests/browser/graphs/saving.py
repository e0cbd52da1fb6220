"""A conversation that saves something, which must not be cut off, and then would say so."""

from __future__ import annotations

from langchain_core.messages import AIMessage
from langchain_ollama import ChatOllama
from langgraph.config import get_config
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.runtime import Runtime

from app.stopping import stop_of


async def save(state: MessagesState, *, runtime: Runtime[None]) -> dict[str, list[AIMessage]]:
    """Take as long as the model server at the run's address does."""
    stop = stop_of(runtime)
    assert stop is not None
    chat = ChatOllama(model="smollm2", base_url=get_config()["configurable"]["model_url"])
    with stop.uninterrupted("save"):
        await chat.ainvoke(state["messages"])
    return {"messages": []}


def tell(state: MessagesState) -> dict[str, list[AIMessage]]:
    """Say that it is done."""
    return {"messages": [AIMessage("It is saved.")]}


graph = StateGraph(MessagesState)
graph.add_node("save", save)
graph.add_node("tell", tell)
graph.add_edge(START, "save")
graph.add_edge("save", "tell")
graph.add_edge("tell", END)
