"""A state's template, filled in, is byte for byte the state that was frozen."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from pydantic import BaseModel

from app.runs.state_templates import (
    WHOLE_BYTES,
    FrozenState,
    filled,
    freeze_state,
    survives_storage,
)
from app.runs.wire import to_json

LONG = '狐 \ud800 and \U0001f98a, "quoted" \\ and {braces}. ' * 200


def anything(_key: str, value: Any, _part: bytes) -> bool:
    return survives_storage(value)


def refilled(frozen: FrozenState, state: dict[str, Any]) -> bytes | None:
    assert frozen.template is not None
    return filled(frozen.template, lambda key: to_json(state[key]) if key in state else None)


class TestALargeState:
    def test_comes_back_byte_for_byte(self) -> None:
        state = {
            "topic": "foxes",
            "messages": [HumanMessage(LONG, id="1"), AIMessage("Yes.", id="2")],
            "count": 2**70,
            "notes": {"of": [LONG, None, 1.5]},
        }
        frozen = freeze_state(state, anything)
        assert frozen.left_out == {"messages", "notes"}
        assert len(frozen.template or b"") < 1024
        assert json.loads(refilled(frozen, state) or b"")["topic"] == "foxes"
        assert refilled(frozen, state) == frozen.whole

    def test_comes_back_inside_of_what_it_is_told_in(self) -> None:
        state = {"a": LONG, "b": 1, "c": LONG[::-1]}
        frozen = freeze_state(state, anything, lambda it: {"before": 1, "values": it, "next": []})
        whole = json.loads(frozen.whole)
        assert list(whole) == ["before", "values", "next"]
        assert list(whole["values"]) == ["a", "b", "c"]
        assert refilled(frozen, state) == frozen.whole

    def test_keeps_what_no_checkpoint_has(self) -> None:
        state = {"kept": LONG, "left": LONG}
        frozen = freeze_state(state, lambda key, *_: key == "left")
        assert frozen.left_out == {"left"}
        assert refilled(frozen, state) == frozen.whole

    @pytest.mark.parametrize("now", [{}, {"text": "another"}])
    def test_is_not_made_up_where_its_value_is_gone_or_another(self, now: dict[str, Any]) -> None:
        assert refilled(freeze_state({"text": LONG}, anything), now) is None

    @settings(max_examples=40)
    @given(
        st.dictionaries(
            st.text(),
            st.recursive(
                st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=400),
                lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            ),
        )
    )
    def test_comes_back_whatever_is_in_it(self, values: dict[str, Any]) -> None:
        state = {**values, "long": LONG}
        frozen = freeze_state(state, anything)
        assert refilled(frozen, state) == frozen.whole


class TestASmallState:
    def test_is_stored_whole(self) -> None:
        assert freeze_state({"text": "x" * (WHOLE_BYTES - 50)}, anything).template is None


class TestWhatSurvivesStorage:
    def test_is_plain_json_and_messages(self) -> None:
        assert survives_storage(
            {"a": [1, "b", None, AIMessage("c"), ToolMessage("d", tool_call_id="e")]}
        )

    def test_is_nothing_of_an_uncertain_type(self) -> None:
        class Model(BaseModel):
            text: str

        class Text(str):
            __slots__ = ()

        for value in (Model(text="a"), (1, 2), {1: 2}, Text("a"), object(), {"a": {1, 2}}, b"a"):
            assert not survives_storage(value)
