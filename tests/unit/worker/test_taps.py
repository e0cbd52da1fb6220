"""What a graph has emitted is what it was then, whatever becomes of it afterwards."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import orjson
import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph, add_messages
from langgraph.graph.state import CompiledStateGraph

from app.worker.parts import EventBuffer, langgraph_modes
from app.worker.taps import TICK, Taps

AnyGraph = CompiledStateGraph[Any, Any, Any, Any]
NESTED: dict[str, Any] = {"a": [{"b": [1, {"c": "as it was"}]}], "d": {"e": []}}


class State(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]
    facts: dict[str, Any]


@dataclass
class Emitted:
    """What a graph's taps gave away, of which as much may be pending as likes to."""

    modes: list[str]
    subgraphs: bool = False
    buffer: EventBuffer = field(init=False)

    def __post_init__(self) -> None:
        self.buffer = EventBuffer(self.modes)

    def is_full(self, events: int = 0, size: int = 0) -> bool:
        return False

    def is_flooded(self, events: int = 0, size: int = 0) -> bool:
        return False

    def flooded(self) -> None:
        raise AssertionError

    async def room(self) -> None:
        raise AssertionError

    async def of(self, graph: AnyGraph, given: State) -> list[tuple[str, Any]]:
        """Run a graph; the events as names and data."""
        taps = Taps(
            langgraph_modes(self.modes),
            subgraphs=self.subgraphs,
            take=self.buffer.add_part,
            bounds=self,
        )
        async for _ in graph.astream(given, taps.tapped({}, graph.store), stream_mode=TICK):
            pass
        self.buffer.give_up()
        return [(event.event, json.loads(event.data)) for event in self.buffer.take()]


def graph_of(*nodes: Callable[..., Any]) -> AnyGraph:
    """One node after the other."""
    graph = StateGraph(State)
    before = START
    for number, node in enumerate(nodes):
        graph.add_node(f"node{number}", node)
        graph.add_edge(before, f"node{number}")
        before = f"node{number}"
    return graph.compile()


def spoil(value: Any) -> None:
    """Change a value in all its depth."""
    if isinstance(value, dict):
        for each in value.values():
            spoil(each)
        value["spoilt"] = True
    elif isinstance(value, list):
        for each in value:
            spoil(each)
        value.append("spoilt")


class TestWhatANodeWrites:
    async def test_is_as_it_was_when_it_was_written(self) -> None:
        given = deepcopy(NESTED)

        async def node(_: State) -> State:
            get_stream_writer()(given)
            spoil(given)
            await asyncio.sleep(0)
            return {}

        assert await Emitted(["custom"]).of(graph_of(node), {"facts": {}}) == [("custom", NESTED)]
        assert given != NESTED

    async def test_is_so_from_a_thread(self) -> None:
        given = deepcopy(NESTED)

        def node(_: State) -> State:
            get_stream_writer()(given)
            spoil(given)
            return {}

        assert await Emitted(["custom"]).of(graph_of(node), {"facts": {}}) == [("custom", NESTED)]

    async def test_arrives_whole_where_ten_thousand_are_written_and_changed_at_once(self) -> None:
        async def node(_: State) -> State:
            writer = get_stream_writer()

            async def one(number: int) -> None:
                given = {"number": number, "nested": [{"number": number}]}
                writer(given)
                spoil(given)
                await asyncio.sleep(0)
                spoil(given)

            await asyncio.gather(*(one(number) for number in range(10_000)))
            return {}

        told = await Emitted(["custom"]).of(graph_of(node), {"facts": {}})
        assert [data for _, data in told] == [
            {"number": number, "nested": [{"number": number}]} for number in range(10_000)
        ]

    async def test_is_of_its_graph_where_that_is_within_another(self) -> None:
        async def within(_: State) -> State:
            get_stream_writer()("within")
            return {}

        inner = graph_of(within)

        async def around(state: State) -> State:
            get_stream_writer()("around")
            await inner.ainvoke(state)
            return {}

        assert await Emitted(["custom"]).of(graph_of(around), {"facts": {}}) == [
            ("custom", "around")
        ]
        told = await Emitted(["custom"], subgraphs=True).of(graph_of(around), {"facts": {}})
        assert told[0] == ("custom", "around")
        assert told[1][1] == "within"
        assert told[1][0].startswith("custom|node0:")


class TestAState:
    @pytest.mark.parametrize("mode", ["values", "updates", "tasks", "debug"])
    async def test_is_as_it_was_when_the_step_ended(self, mode: str) -> None:
        """The next step gets the same objects, before anybody has read the last one's event."""
        begun = threading.Event()

        async def first(_: State) -> State:
            return {"facts": deepcopy(NESTED)}

        async def second(state: State) -> State:
            spoil(state["facts"])
            begun.set()
            return {}

        told = await Emitted([mode]).of(graph_of(first, second), {"facts": {}})
        assert begun.is_set()
        about = [data for _, data in told if b"as it was" in orjson.dumps(data)]
        assert about
        assert b"spoilt" not in orjson.dumps(about[0])


class TestAMessage:
    async def test_is_as_it_was_when_it_was_streamed(self) -> None:
        answer = AIMessage("one two three", id="m")
        model = GenericFakeChatModel(messages=iter([answer]))

        async def node(state: State) -> State:
            async for chunk in model.astream(state["messages"]):
                chunk.content = "spoilt"
                chunk.additional_kwargs["spoilt"] = True
            return {}

        told = await Emitted(["messages-tuple"]).of(
            graph_of(node), {"messages": [HumanMessage("hi")]}
        )
        text = "".join(data[0]["content"] for name, data in told if name == "messages")
        assert text == "one two three"
        assert b"spoilt" not in orjson.dumps(told)

    async def test_that_cannot_be_copied_is_told_all_the_same(self) -> None:
        async def node(_: State) -> State:
            said = AIMessage("hello", id="m", additional_kwargs={"lock": threading.Lock()})
            return {"messages": [said]}

        told = await Emitted(["messages-tuple"]).of(graph_of(node), {"messages": []})
        assert [data[0]["content"] for name, data in told if name == "messages"] == ["hello"]

    def test_grows_from_copies(self) -> None:
        buffer = EventBuffer(["messages-tuple"])
        metadata = {"langgraph_node": "model"}
        buffer.add_part(((), "messages", (AIMessageChunk(content="a", id="m"), metadata)))
        metadata["langgraph_node"] = "spoilt"
        (event,) = buffer.take()
        assert orjson.loads(event.data)[1] == {"langgraph_node": "model"}
