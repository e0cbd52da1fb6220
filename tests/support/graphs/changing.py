"""A graph that changes whatever it has emitted as soon as it has, from where its input says."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypedDict
from uuid import UUID

from langchain_core.messages import AIMessage, AIMessageChunk
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel

BURST = 10_000


class Model(BaseModel):
    """A pydantic model with something in it."""

    inner: dict[str, Any]


@dataclass
class Record:
    """A dataclass with something in it."""

    inner: dict[str, Any]


class Broken(BaseModel):
    """What cannot say what it is."""

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """Fail, with words that are nobody's business."""
        raise ValueError("a secret")


class State(TypedDict, total=False):
    """From where to emit, and what is changed from step to step."""

    way: str
    facts: dict[str, Any]


def payloads() -> dict[str, Any]:
    """One of each kind."""
    return {
        "list": [],
        "object": {},
        "null": None,
        "nested": {"a": [{"b": [1, {"c": "as it was"}]}], "d": {"e": []}},
        "nan": float("nan"),
        "infinity": float("-inf"),
        "uuid": UUID("6f1c1f0e-6f0f-4f8a-8f3b-0d4e0a8f6a51"),
        "moment": datetime(2026, 3, 1, tzinfo=UTC),
        "decimal": Decimal("1.50"),
        "bytes": bytearray(b"abc"),
        "set": {1},
        "nul": "a\u0000b",
        "surrogate": "a\ud800b",
        "large": 2**70,
        "message": AIMessage("as it was", id="m", additional_kwargs={"a": ["as it was"]}),
        "chunk": AIMessageChunk(content="as it was", id="c", response_metadata={"a": ["b"]}),
        "model": Model(inner={"a": ["as it was"]}),
        "record": Record(inner={"a": ["as it was"]}),
        "broken": Broken(),
        "lock": threading.Lock(),
    }


def spoil(value: Any) -> None:
    """Change a value in all its depth."""
    match value:
        case dict():
            for each in value.values():
                spoil(each)
            value["spoilt"] = True
        case list():
            for each in value:
                spoil(each)
            value.append("spoilt")
        case set():
            value.add("spoilt")
        case bytearray():
            value.extend(b"spoilt")
        case AIMessage():
            value.content = "spoilt"
            spoil(value.additional_kwargs)
            spoil(value.response_metadata)
        case Model() | Record():
            spoil(value.inner)


def emit(write: Callable[[Any], None]) -> None:
    """Emit each, and change it at once."""
    for kind, payload in payloads().items():
        told = {"kind": kind, "payload": payload}
        write(told)
        spoil(told)


async def emit_all(state: State) -> State:
    """Emit in the node, or in a task of its own, or in a thread."""
    write = get_stream_writer()
    match state["way"]:
        case "node":
            emit(write)
        case "task":
            await asyncio.create_task(_emit_in_a_task(write))
        case "thread":
            await asyncio.to_thread(emit, write)
        case "burst":
            await asyncio.gather(*(_burst(write, number) for number in range(BURST)))
        case "flood":
            for number in range(3 * BURST):
                write(number)
    return {"facts": {"a": ["as it was"]}}


async def _emit_in_a_task(write: Callable[[Any], None]) -> None:
    emit(write)


async def _burst(write: Callable[[Any], None], number: int) -> None:
    told = {"number": number, "nested": [{"number": number}]}
    write(told)
    spoil(told)
    await asyncio.sleep(0)
    spoil(told)


def change(state: State) -> State:
    """Change what the last step's events tell of, in a thread."""
    spoil(state["facts"])
    return {}


graph = StateGraph(State)
graph.add_node("emit", emit_all)
graph.add_node("change", change)
graph.add_edge(START, "emit")
graph.add_edge("emit", "change")
graph.add_edge("change", END)
