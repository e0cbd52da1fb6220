"""What of tools' results a model is given."""

from __future__ import annotations

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from app.agent.tool_results import CUT, LEAST, UNSEEN, readable_results

IMAGE: dict[str, object] = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def turn(*contents: str | list[str | dict[str, object]]) -> list[BaseMessage]:
    results = [ToolMessage(each, tool_call_id=str(n)) for n, each in enumerate(contents)]
    return [HumanMessage("look"), AIMessage("I do"), *results]


def given(
    messages: list[BaseMessage], tokens: int = 10_000, *, sees_images: bool = False
) -> list[object]:
    return [each.content for each in readable_results(messages, tokens, sees_images=sees_images)]


class TestAResult:
    def test_that_fits_is_given_as_it_is(self) -> None:
        messages = turn("found")
        assert readable_results(messages, 1000, sees_images=False) == messages

    def test_leaves_room_for_the_conversation(self) -> None:
        assert given(turn("x" * 100_000), 1000)[-1] == "x" * 2000 + CUT

    def test_shares_the_room_with_the_others_of_its_turn(self) -> None:
        shared = given(turn("x" * 100_000, "y" * 100_000), 1000)[2:]
        assert shared == ["x" * 1000 + CUT, "y" * 1000 + CUT]

    def test_says_something_however_many_there_are(self) -> None:
        assert given(turn(*["x" * 1000] * 50), 100)[-1] == "x" * LEAST + CUT

    def test_is_never_changed_itself(self) -> None:
        messages = turn(["here", IMAGE], "x" * 100_000)
        given(messages, 100)
        assert messages[2].content == ["here", IMAGE]


class TestAnImage:
    def test_is_shown_to_a_model_that_sees(self) -> None:
        shown = given(turn([{"type": "text", "text": "here"}, IMAGE]), sees_images=True)[-1]
        assert shown == [{"type": "text", "text": "here"}, IMAGE]

    def test_is_told_to_one_that_does_not(self) -> None:
        assert given(turn([{"type": "text", "text": "here"}, IMAGE]))[-1] == f"here\n{UNSEEN}"
        assert given(turn([IMAGE]))[-1] == UNSEEN
