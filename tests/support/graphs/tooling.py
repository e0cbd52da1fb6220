"""A graph of an operator's own that calls tools in every way: as coroutines, in threads, nested."""

from __future__ import annotations

import asyncio
from typing import TypedDict

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph


class State(TypedDict, total=False):
    """What the calls found."""

    found: list[str]


@tool
def spell(word: str) -> str:
    """Spell a word."""
    return "-".join(word)


@tool
async def look_up(word: str) -> str:
    """Look a word up, with another tool's help."""
    return str(await spell.ainvoke({"word": word}))


@tool
async def fail(word: str) -> str:
    """Fail."""
    raise RuntimeError(word)


async def ask(state: State) -> State:
    """Ask a model, which is none of the tools."""
    model = GenericFakeChatModel(messages=iter([AIMessage("one two three")]))
    return {"found": [str((await model.ainvoke("go on")).content)]}


async def use(state: State) -> State:
    """Make four calls, one of them from another's inside, and one that fails."""
    found = [str(await look_up.ainvoke({"word": "abc"}))]
    found.append(str(await asyncio.to_thread(spell.invoke, {"word": "de"})))
    try:
        await fail.ainvoke({"word": "f"})
    except RuntimeError:
        found.append("failed")
    return {"found": state["found"] + found}


graph = StateGraph(State)
graph.add_node("ask", ask)
graph.add_node("use", use)
graph.add_edge(START, "ask")
graph.add_edge("ask", "use")
graph.add_edge("use", END)
