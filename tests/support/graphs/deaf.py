"""A graph that takes no notice of its end."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict, total=False):
    """Nothing that matters."""

    begun: bool


enough = asyncio.Event()
"""Ends it, for whoever runs it in a process of their own."""


async def hold_on(state: State) -> State:
    """Go on, whatever anybody says."""
    while not enough.is_set():
        with suppress(asyncio.CancelledError):
            await enough.wait()
    return state


graph = StateGraph(State)
graph.add_node("begin", lambda _: {"begun": True})
graph.add_node("hold_on", hold_on)
graph.add_edge(START, "begin")
graph.add_edge("begin", "hold_on")
graph.add_edge("hold_on", END)
