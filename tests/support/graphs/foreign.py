"""A conversation that knows nothing of Stoa: it answers in its own way and never heeds a stop."""

from __future__ import annotations

import asyncio

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_ollama import ChatOllama
from langgraph.graph import END, START, MessagesState, StateGraph


async def model(state: MessagesState, config: RunnableConfig) -> MessagesState:
    """Call a tool if asked to, answer otherwise; the model server's address comes with the run."""
    last = state["messages"][-1]
    if last.content == "use the tool":
        call = {"name": "wait", "args": {}, "id": "call-1"}
        return {"messages": [AIMessage("", tool_calls=[call])]}
    chat = ChatOllama(model="smollm2", base_url=config["configurable"]["model_url"])
    try:
        return {"messages": [await chat.ainvoke(state["messages"], config)]}
    finally:
        await chat._async_client._client.aclose()


async def tools(state: MessagesState) -> MessagesState:
    """Never come back."""
    await asyncio.Event().wait()
    last = state["messages"][-1]
    assert isinstance(last, AIMessage)
    return {"messages": [ToolMessage("done", tool_call_id=str(last.tool_calls[0]["id"]))]}


def after(state: MessagesState) -> str:
    """Where an answer leads."""
    last = state["messages"][-1]
    return "tools" if isinstance(last, AIMessage) and last.tool_calls else END


graph = StateGraph(MessagesState)
graph.add_node("model", model)
graph.add_node("tools", tools)
graph.add_edge(START, "model")
graph.add_conditional_edges("model", after, ["tools", END])
graph.add_edge("tools", "model")
