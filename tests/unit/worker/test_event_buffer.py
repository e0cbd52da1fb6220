"""What a graph streams between two flushes: deltas are merged, all else stays as it was."""

from __future__ import annotations

import json
from typing import Any, Literal

from langchain_core.messages import AIMessageChunk

from app.worker.parts import EventBuffer


def chunk(text: str, message_id: str = "m", *, last: bool = False) -> AIMessageChunk:
    position: Literal["last"] | None = "last" if last else None
    return AIMessageChunk(content=text, id=message_id, chunk_position=position)


def stream(
    buffer: EventBuffer, *chunks: AIMessageChunk, namespace: tuple[str, ...] = ()
) -> list[tuple[str, Any]]:
    """The events of one flush."""
    for each in chunks:
        buffer.add_part((namespace, "messages", (each, {"langgraph_node": "model"})))
    return taken(buffer)


def taken(buffer: EventBuffer) -> list[tuple[str, Any]]:
    return [(event.event, json.loads(event.data)) for event in buffer.take()]


def texts(events: list[tuple[str, Any]]) -> list[tuple[str, str]]:
    return [(name, data[0]["content"]) for name, data in events if name != "messages/metadata"]


class TestDeltas:
    def test_of_one_message_are_merged_until_they_are_flushed(self) -> None:
        buffer = EventBuffer(["messages-tuple"])
        assert texts(stream(buffer, chunk("a"), chunk("b"))) == [("messages", "ab")]
        assert texts(stream(buffer, chunk("c"))) == [("messages", "c")]
        assert buffer.take() == []

    def test_of_two_messages_stay_apart_and_in_order(self) -> None:
        buffer = EventBuffer(["messages-tuple"])
        said = stream(buffer, chunk("a"), chunk("x", "n"), chunk("b"))
        assert [text for _, text in texts(said)] == ["a", "x", "b"]

    def test_of_two_namespaces_stay_apart(self) -> None:
        buffer = EventBuffer(["messages-tuple"])
        buffer.add_part((("one",), "messages", (chunk("a"), {})))
        said = stream(buffer, chunk("b"), namespace=("two",))
        assert texts(said) == [("messages|one", "a"), ("messages|two", "b")]

    def test_are_not_merged_across_another_event(self) -> None:
        buffer = EventBuffer(["messages-tuple", "custom"])
        buffer.add_part(((), "messages", (chunk("a"), {})))
        buffer.add_part(((), "custom", 1))
        assert [name for name, _ in stream(buffer, chunk("b"))] == [
            "messages",
            "custom",
            "messages",
        ]


class TestMessagesThatGrow:
    def test_are_told_once_a_flush_as_far_as_they_have_come(self) -> None:
        buffer = EventBuffer(["messages"])
        said = stream(buffer, chunk("a"), chunk("b"), chunk("c"))
        assert [name for name, _ in said] == ["messages/metadata", "messages/partial"]
        assert texts(said) == [("messages/partial", "abc")]
        assert texts(stream(buffer, chunk("d"), chunk("e"))) == [("messages/partial", "abcde")]

    def test_are_told_whole_at_their_end_and_no_more(self) -> None:
        buffer = EventBuffer(["messages"])
        said = stream(buffer, chunk("a"), chunk("b"), chunk("", last=True))
        assert texts(said) == [("messages/complete", "ab")]
        assert buffer.take() == []

    def test_of_two_at_once_lose_nothing(self) -> None:
        buffer = EventBuffer(["messages"])
        said = stream(buffer, chunk("a"), chunk("x", "n"), chunk("y", "n", last=True))
        assert texts(said) == [("messages/partial", "a"), ("messages/complete", "xy")]

    def test_can_be_told_both_ways(self) -> None:
        buffer = EventBuffer(["messages", "messages-tuple"])
        said = stream(buffer, chunk("a"), chunk("b"), chunk("c"))
        assert "".join(text for name, text in texts(said) if name == "messages") == "abc"
        assert texts(said)[-1] == ("messages/partial", "abc")


class TestWhatIsEmitted:
    def test_is_frozen_before_a_graph_can_change_it(self) -> None:
        buffer = EventBuffer(["custom"])
        data = {"step": 1}
        buffer.add_part(((), "custom", data))
        data["step"] = 2
        assert taken(buffer) == [("custom", {"step": 1})]

    def test_by_a_task_carries_no_words_of_an_exception(self) -> None:
        buffer = EventBuffer(["tasks"])
        buffer.add_part(((), "tasks", {"id": "t", "error": "ValueError('a secret')"}))
        assert taken(buffer) == [("tasks", {"id": "t", "error": "graph_failed"})]
