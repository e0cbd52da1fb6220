"""Every history becomes one that a model's API accepts."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage
from langgraph.graph.message import add_messages

from app.agent.history import NO_RESULT, NOT_MADE, answered, closing_messages

IDS = ("a", "b", "c")


def asking(*ids: str, message_id: str | None = None) -> AIMessage:
    calls = [ToolCall(name=f"tool_{each}", args={}, id=each) for each in ids]
    return AIMessage("", id=message_id, tool_calls=calls)


def result(call_id: str, text: str = "done") -> ToolMessage:
    return ToolMessage(text, tool_call_id=call_id)


def outline(messages: list[BaseMessage]) -> list[str]:
    """Types, and of results whose they are and whether they are errors."""
    return [
        f"{each.tool_call_id} {each.status}" if isinstance(each, ToolMessage) else each.type
        for each in messages
    ]


any_messages = st.lists(
    st.one_of(
        st.just(HumanMessage("hi")),
        st.lists(st.sampled_from(IDS), unique=True).map(lambda ids: asking(*ids)),
        st.sampled_from(IDS).map(result),
    )
)


class TestAnsweredCalls:
    def test_a_whole_history_stays_as_it_is(self) -> None:
        whole = [HumanMessage("hi"), asking("a", "b"), result("a"), result("b"), AIMessage("so")]
        assert answered(whole) == whole

    def test_a_call_without_a_result_is_closed_before_what_was_said_next(self) -> None:
        history = [HumanMessage("hi"), asking("a"), HumanMessage("never mind")]
        assert outline(answered(history)) == ["human", "ai", "a error", "human"]

    def test_a_result_that_came_late_moves_to_its_call(self) -> None:
        history = [asking("a", "b"), HumanMessage("well?"), result("b"), result("a")]
        assert outline(answered(history)) == ["ai", "a success", "b success", "human"]

    def test_results_of_no_call_and_second_results_are_left_out(self) -> None:
        history = [result("x"), asking("a"), result("a", "first"), result("a", "second")]
        kept = answered(history)
        assert outline(kept) == ["ai", "a success"]
        assert kept[1].text == "first"

    def test_an_id_that_is_used_again_belongs_to_the_newer_call(self) -> None:
        history = [asking("a"), HumanMessage("again"), asking("a"), result("a")]
        assert outline(answered(history)) == ["ai", "a error", "human", "ai", "a success"]

    @given(any_messages)
    def test_each_call_is_followed_by_its_results_and_nothing_else_is(
        self, history: list[BaseMessage]
    ) -> None:
        waiting: list[str | None] = []
        for message in answered(history):
            if isinstance(message, ToolMessage):
                assert message.tool_call_id == waiting.pop(0)
                continue
            assert not waiting
            if isinstance(message, AIMessage):
                waiting = [call["id"] for call in message.tool_calls]
        assert not waiting

    @given(any_messages)
    def test_closing_the_closed_changes_nothing(self, history: list[BaseMessage]) -> None:
        once = answered(history)
        assert answered(once) == once


class TestClosingMessages:
    def test_there_is_one_for_each_call_without_a_result(self) -> None:
        history = [asking("a", "b"), result("b"), HumanMessage("hi"), asking("c")]
        closing = closing_messages(history)
        assert outline([*closing]) == ["a error", "c error"]
        assert [each.name for each in closing] == ["tool_a", "tool_c"]

    def test_those_of_calls_that_were_not_made_say_so(self) -> None:
        closing = closing_messages([asking("a", "b")], {"b"})
        assert [each.text for each in closing] == [NO_RESULT, NOT_MADE]

    def test_adding_them_twice_adds_them_once(self) -> None:
        history = [HumanMessage("hi", id="1"), asking("a", message_id="2")]
        closing = closing_messages(history)
        once: Any = add_messages(history, closing)  # type: ignore[arg-type]
        twice: Any = add_messages(once, closing)  # type: ignore[arg-type]
        assert len(twice) == 3
        assert closing_messages(twice) == []


class TestAnAnswerThatWasBrokenOff:
    def test_and_gone_on_with_is_one_message(self) -> None:
        mark = {"stoa_incomplete": "stopped"}
        history = [
            HumanMessage("a story"),
            AIMessage("Once ", response_metadata=mark),
            AIMessage("upon ", response_metadata=mark),
            AIMessage("a time.", tool_calls=[ToolCall(name="tool_a", args={}, id="a")]),
            result("a"),
        ]
        kept = answered(history)
        assert outline(kept) == ["human", "ai", "a success"]
        assert kept[1].text == "Once upon a time."
        assert isinstance(kept[1], AIMessage)
        assert kept[1].tool_calls[0]["id"] == "a"

    def test_and_not_gone_on_with_stays_apart_from_the_next(self) -> None:
        history = [
            AIMessage("Once ", response_metadata={"stoa_incomplete": "stopped"}),
            HumanMessage("stop"),
            AIMessage("Done."),
        ]
        assert [each.text for each in answered(history)] == ["Once ", "stop", "Done."]
