"""Whatever a graph puts into its state, there is JSON for it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk

from app.runs.wire import to_json


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize("levels", [300, 900, 100_000])
def test_what_is_nested_too_deeply_is_named_by_its_type(levels: int) -> None:
    assert b"<dict>" in to_json(nested(levels))


@pytest.mark.parametrize("message", [AIMessage, AIMessageChunk])
def test_so_are_the_arguments_of_a_call(message: type[AIMessage]) -> None:
    said = message("on it", tool_calls=[{"name": "f", "args": nested(300), "id": "1"}])
    assert json.loads(to_json([said]))[0]["content"] == "on it"
