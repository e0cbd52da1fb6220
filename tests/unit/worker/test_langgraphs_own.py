"""What is taken from a graph is what LangGraph streams of it, in its order: no more, no less."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import count
from typing import Annotated, Any, TypedDict

import orjson
import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_store, get_stream_writer
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph, add_messages
from langgraph.pregel import Pregel
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, Send, StreamMode, interrupt

from app.runs.wire import to_json
from app.worker.parts import Part
from app.worker.public import public
from app.worker.taps import TICK, Taps

MODES: list[StreamMode] = [
    "values",
    "updates",
    "messages",
    "custom",
    "tasks",
    "checkpoints",
    "debug",
]
UNIQUE = re.compile(rb"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
MOMENT = re.compile(rb"\d{4}-\d\d-\d\dT[\d:.]+\+00:00")


class State(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]
    given: int
    found: Annotated[list[int], lambda old, new: [*old, *new]]


AnyGraph = Pregel[Any, Any, Any, Any]


def chain(*nodes: Any) -> AnyGraph:
    graph = StateGraph(State)
    before = START
    for number, node in enumerate(nodes):
        graph.add_node(f"node{number}", node)
        graph.add_edge(before, f"node{number}")
        before = f"node{number}"
    return graph.compile()


def model(number: int) -> GenericFakeChatModel:
    return GenericFakeChatModel(messages=iter([AIMessage("one two three", id=f"said-{number}")]))


async def answering(state: State) -> State:
    return {"messages": [await model(1).ainvoke(state["messages"])]}


def answering_in_a_thread(state: State) -> State:
    return {"messages": [model(2).invoke(state["messages"])]}


async def telling(_: State) -> State:
    write = get_stream_writer()
    for number in range(3):
        write({"number": number})
    return {"given": 1}


def telling_in_a_thread(_: State) -> State:
    write = get_stream_writer()
    for number in range(3):
        write([number])
    return {"given": 2}


async def silent(_: State) -> None:
    return None


async def calling_a_graph(state: State) -> State:
    result = await chain(telling, answering).ainvoke({"messages": state["messages"]})
    return {"messages": result["messages"][-1:]}


def calling_a_graph_in_a_thread(state: State) -> State:
    inner = chain(telling_in_a_thread, answering_in_a_thread)
    return {"messages": inner.invoke({"messages": state["messages"]})["messages"][-1:]}


async def calling_a_graph_of_another_thread(state: State) -> State:
    inner = saving(chain(telling, answering))
    elsewhere: RunnableConfig = {"configurable": {"thread_id": "another"}}
    result = await inner.ainvoke({"messages": state["messages"]}, elsewhere)
    return {"messages": [AIMessage(result["messages"][-1].content, id="told")]}


async def listening_to_a_graph(state: State) -> State:
    inner = chain(answering)
    given = {"messages": state["messages"]}
    async for _ in inner.astream(given, stream_mode=["messages", "custom"]):
        pass
    return {"given": 3}


async def asking(_: State) -> State:
    return {"given": interrupt({"question": "really?"})}


async def remembering(_: State) -> State:
    await get_store().aput(("a",), "b", {"c": 1})
    return {"given": len(await get_store().asearch(("a",)))}


async def commanding(_: State) -> Command[Any]:
    return Command(update={"messages": [AIMessage("told", id="commanded")], "given": 4})


async def one(state: Any) -> State:
    get_stream_writer()(state["given"])
    return {"found": [state["given"]]}


def fanned_out() -> AnyGraph:
    graph = StateGraph(State)
    graph.add_node("one", one, input_schema=State)
    graph.add_conditional_edges(
        START, lambda _: [Send("one", {"given": number}) for number in range(3)], ["one"]
    )
    return graph.compile()


@task
async def doubled(number: int) -> int:
    get_stream_writer()(number)
    return 2 * number


@entrypoint()
async def functional(state: State) -> State:
    first = await doubled(state["given"])
    return {"given": await doubled(first)}


GRAPHS: dict[str, Callable[[], AnyGraph]] = {
    "a chain": lambda: chain(telling, silent, answering),
    "threads": lambda: chain(telling_in_a_thread, answering_in_a_thread),
    "a graph as a node": lambda: chain(chain(telling, answering), telling),
    "a graph within": lambda: chain(calling_a_graph, telling),
    "a graph within a thread": lambda: chain(calling_a_graph_in_a_thread, telling),
    "a graph of another thread": lambda: chain(calling_a_graph_of_another_thread),
    "a graph listened to": lambda: chain(listening_to_a_graph),
    "a graph in a graph in a graph": lambda: chain(chain(chain(telling, answering)), telling),
    "a question": lambda: chain(telling, asking),
    "a question within": lambda: chain(chain(telling, asking), telling),
    "a command": lambda: chain(commanding, telling),
    "many at once": fanned_out,
    "functions": lambda: functional,
    "a store": lambda: chain(remembering).copy(update={"store": InMemoryStore()}),
}

GIVEN: State = {"messages": [HumanMessage("hello", id="asked")], "given": 5, "found": []}


def told(parts: list[tuple[tuple[str, ...], str, Any]]) -> list[bytes]:
    """Parts with what differs from run to run numbered."""
    names: Iterator[int] = count()
    known: dict[bytes, bytes] = {}

    def number(found: re.Match[bytes]) -> bytes:
        name = found[0].replace(b"-", b"")
        if name not in known:
            known[name] = b"#%d" % next(names)
        return known[name]

    lines = [to_json(part) for part in parts]
    return [MOMENT.sub(b"now", UNIQUE.sub(number, line)) for line in lines]


def saving(graph: AnyGraph) -> AnyGraph:
    return graph.copy(update={"checkpointer": InMemorySaver()})


class Unbounded:
    def is_full(self, events: int = 0, size: int = 0) -> bool:
        return False

    def is_flooded(self, events: int = 0, size: int = 0) -> bool:
        return False

    def flooded(self) -> None:
        raise AssertionError

    async def room(self) -> None:
        raise AssertionError


CONFIG: RunnableConfig = {"configurable": {"thread_id": "thread"}}


async def taken(graph: AnyGraph, modes: list[StreamMode], *, subgraphs: bool) -> list[Part]:
    parts: list[Part] = []
    taps = Taps(modes, subgraphs=subgraphs, take=parts.append, bounds=Unbounded())
    config = taps.tapped(CONFIG, graph.store)
    async for _ in graph.astream(GIVEN, config, stream_mode=TICK, durability="sync"):
        pass
    return parts


async def streamed(graph: AnyGraph, modes: list[StreamMode], *, subgraphs: bool) -> list[Part]:
    parts: list[Any] = [
        part
        async for part in graph.astream(
            GIVEN, CONFIG, stream_mode=modes, subgraphs=subgraphs, durability="sync"
        )
    ]
    return parts if subgraphs else [((), *part) for part in parts]


def shown(parts: list[Part]) -> list[Part]:
    return [
        (name, mode, data if isinstance(data, orjson.Fragment) else public(mode, data))
        for name, mode, data in parts
    ]


@pytest.mark.parametrize("subgraphs", [False, True], ids=["alone", "with subgraphs"])
@pytest.mark.parametrize("modes", [["values"], ["messages"], ["custom"], MODES], ids="+".join)
@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
async def test_of(graph: Callable[[], AnyGraph], modes: list[StreamMode], subgraphs: bool) -> None:
    own = await streamed(saving(graph()), modes, subgraphs=subgraphs)
    ours = await taken(saving(graph()), modes, subgraphs=subgraphs)
    assert told(shown(ours)) == told(shown(own))
