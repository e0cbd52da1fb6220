"""A graph that streams much more than anybody reads at once."""

from __future__ import annotations

import asyncio
from typing import TypedDict

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph


class State(TypedDict, total=False):
    """How much to stream."""

    events: int
    size: int


async def pour(state: State) -> State:
    """Stream that many events of that size."""
    write = get_stream_writer()
    for number in range(state["events"]):
        write({"number": number, "filling": "x" * state["size"]})
        await asyncio.sleep(0)
    return {}


graph = StateGraph(State)
graph.add_node("pour", pour)
graph.add_edge(START, "pour")
graph.add_edge("pour", END)
