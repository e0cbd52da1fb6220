"""Graphs that ask a person, and a thread on which one of them waits."""

from __future__ import annotations

import json
import operator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

import httpx
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from tests.support.frames import Frame, follow, new_thread, read_run, start_run


class Told(TypedDict, total=False):
    """What was answered, question by question."""

    told: Annotated[list[str], operator.add]


def _ask(question: str) -> str:
    return f"{question} {interrupt(question)}"


async def ask_once(state: Told) -> Told:
    """Ask one thing."""
    return {"told": [_ask("name?")]}


async def ask_twice(state: Told) -> Told:
    """Ask one thing, and then another in the same node."""
    return {"told": [_ask("first?"), _ask("second?")]}


async def tell(state: Told) -> Told:
    """Do something in between."""
    return {"told": ["between"]}


async def left(state: Told) -> Told:
    """Ask beside somebody else who asks."""
    return {"told": [_ask("left?")]}


async def right(state: Told) -> Told:
    """Ask beside somebody else who asks."""
    return {"told": [_ask("right?")]}


def _once() -> StateGraph[Any, Any, Any, Any]:
    graph = StateGraph(Told)
    graph.add_node("ask", ask_once)
    graph.add_edge(START, "ask")
    return graph


def _twice() -> StateGraph[Any, Any, Any, Any]:
    graph = StateGraph(Told)
    graph.add_node("ask", ask_twice)
    graph.add_edge(START, "ask")
    return graph


def _later() -> StateGraph[Any, Any, Any, Any]:
    graph = StateGraph(Told)
    graph.add_node("ask", ask_once)
    graph.add_node("tell", tell)
    graph.add_node("again", ask_once)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "tell")
    graph.add_edge("tell", "again")
    graph.add_edge("again", END)
    return graph


def _nested() -> StateGraph[Any, Any, Any, Any]:
    graph = StateGraph(Told)
    graph.add_node("inner", _twice().compile())
    graph.add_edge(START, "inner")
    return graph


def _beside() -> StateGraph[Any, Any, Any, Any]:
    graph = StateGraph(Told)
    graph.add_node("left", left)
    graph.add_node("right", right)
    graph.add_edge(START, "left")
    graph.add_edge(START, "right")
    return graph


once = _once()
twice = _twice()
later = _later()
nested = _nested()
beside = _beside()

_NAMES = ("once", "twice", "later", "nested", "beside")


def declare(folder: Path) -> Path:
    """Write a ``langgraph.json`` of these graphs."""
    (folder / "graphs.py").write_text(f"from {__name__} import {', '.join(_NAMES)}\n")
    declared = folder / "langgraph.json"
    graphs = {name: f"./graphs.py:{name}" for name in _NAMES}
    declared.write_text(json.dumps({"graphs": graphs}))
    return declared


@dataclass
class Waiting:
    """A thread whose run waits, or has waited."""

    client: httpx.AsyncClient
    thread: str
    location: str
    """Of the run."""
    graph: str
    log: list[Frame]
    """What the run streamed until it waited."""

    @property
    def run_id(self) -> str:
        return self.location.rpartition("/")[2]

    async def questions(self) -> dict[str, Any]:
        """What is asked, by the interrupts' ids."""
        state = (await self.client.get(f"{self.thread}/state")).json()
        return {each["id"]: each["value"] for each in state["interrupts"]}

    async def told(self) -> list[str]:
        """What the graph noted of the answers."""
        state = (await self.client.get(f"{self.thread}/state")).json()
        said: list[str] = state["values"].get("told", [])
        return said

    async def run(self) -> dict[str, Any]:
        """The run as it is now."""
        found: dict[str, Any] = (await self.client.get(self.location)).json()
        return found

    async def answer(
        self, resume: Any, *, headers: dict[str, str] | None = None, **fields: Any
    ) -> httpx.Response:
        """Answer, and don't wait."""
        body = {"assistant_id": self.graph, "command": {"resume": resume}, **fields}
        return await self.client.post(f"{self.thread}/runs", json=body, headers=headers)

    async def answer_and_read(self, resume: Any, **fields: Any) -> list[Frame]:
        """Answer, and read on to the end, or until something else is asked."""
        body = {"assistant_id": self.graph, "command": {"resume": resume}, **fields}
        path = f"{self.thread}/runs/stream"
        async with self.client.stream("POST", path, json=body) as response:
            assert response.status_code == 200, await response.aread()
            assert response.headers["content-location"] == self.location
            return [frame async for frame in follow(response)]


async def waiting(client: httpx.AsyncClient, graph: str = "once", **fields: Any) -> Waiting:
    """Begin a thread with a graph that asks, and read until it waits."""
    thread_id = await new_thread(client)
    location = await start_run(
        client, thread_id, assistant=graph, graph_input={"told": []}, **fields
    )
    log = await read_run(client, location)
    assert log[-1].data["status"] == "interrupted"
    return Waiting(client, f"/threads/{thread_id}", location, graph, log)


def status_of(frames: list[Frame]) -> str:
    """How a stream ended."""
    assert frames[-1].event == "end"
    return str(frames[-1].data["status"])
