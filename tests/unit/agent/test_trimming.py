"""Which part of a long conversation the model is given."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage

from app.agent.history import answered
from app.agent.trimming import newest_turns

QUESTION, ANSWER = HumanMessage("question"), AIMessage("answer")
TOOLS = [
    AIMessage("", tool_calls=[ToolCall(name="t", args={}, id="a")]),
    ToolMessage("result", tool_call_id="a"),
]

any_messages = st.lists(st.sampled_from([QUESTION, ANSWER, *TOOLS]), min_size=1, max_size=30)


def fitting(messages: list[BaseMessage], size: int) -> list[BaseMessage]:
    """Trim to a window in which each message counts one."""
    return newest_turns(messages, size, len)


class TestWholeTurns:
    def test_everything_stays_that_fits(self) -> None:
        history = [QUESTION, ANSWER, QUESTION]
        assert fitting(history, 3) == history

    def test_the_oldest_turns_go(self) -> None:
        history = [QUESTION, ANSWER, QUESTION, *TOOLS, ANSWER, QUESTION]
        assert fitting(history, 6) == [QUESTION, *TOOLS, ANSWER, QUESTION]
        assert fitting(history, 4) == [QUESTION]

    def test_nothing_stands_before_the_first_question(self) -> None:
        assert fitting([ANSWER, QUESTION], 2) == [QUESTION]
        assert fitting([ANSWER], 1) == [ANSWER]
        assert fitting([], 1) == []


class TestATurnThatDoesNotFit:
    def test_keeps_its_question_and_the_newest_exchanges(self) -> None:
        assert fitting([QUESTION, *TOOLS * 3], 5) == [QUESTION, *TOOLS * 2]

    def test_splits_no_call_from_its_result(self) -> None:
        assert fitting([QUESTION, *TOOLS * 3], 4) == [QUESTION, *TOOLS]

    def test_keeps_at_least_the_last_exchange(self) -> None:
        assert fitting([QUESTION, ANSWER, *TOOLS], 1) == [QUESTION, *TOOLS]
        assert fitting([QUESTION], 0) == [QUESTION]


class TestAnyHistory:
    @given(any_messages, st.integers(min_value=0, max_value=30))
    def test_what_is_left_is_whole(self, messages: list[BaseMessage], size: int) -> None:
        history = answered(messages)
        kept = fitting(history, size)
        assert answered(kept) == kept
        assert bool(kept) == bool(history)
        assert kept[-1:] == history[-1:]
