"""A graph of three steps without a model: what is left is the machinery's own cost."""

from __future__ import annotations

import operator
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph


class Steps(TypedDict):
    """The names of the steps taken, and a text of about 2 KB as a message would be."""

    steps: Annotated[list[str], operator.add]
    text: str


async def first(state: Steps) -> dict[str, list[str]]:  # noqa: ARG001 - a node takes the state
    """Take the first step."""
    return {"steps": ["first"]}


async def second(state: Steps) -> dict[str, list[str]]:  # noqa: ARG001
    """Take the second step."""
    return {"steps": ["second"]}


async def third(state: Steps) -> dict[str, list[str]]:  # noqa: ARG001
    """Take the third step."""
    return {"steps": ["third"]}


three_steps = StateGraph(Steps)
three_steps.add_node("first", first)
three_steps.add_node("second", second)
three_steps.add_node("third", third)
three_steps.add_edge(START, "first")
three_steps.add_edge("first", "second")
three_steps.add_edge("second", "third")
three_steps.add_edge("third", END)
