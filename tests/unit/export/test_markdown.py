"""A conversation as Markdown: who said what, and nothing in it that gets out of its place."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from app.export.conversation import Conversation
from app.export.headings import Heading
from app.export.markdown import conversation_markdown
from app.export.markup import code, fenced, quoted, words
from app.tools.outcomes import METADATA, Outcome

THREAD = UUID("0b0e4b9c-6a39-4b8c-9d51-7a1e5a1c9f10")
MOMENT = datetime(2026, 3, 1, 10, 15, tzinfo=UTC)
PIXEL = "data:image/png;base64,iVBORw0KGgo="
FENCE = re.compile(r"^(`{3,})")


def markdown(*messages: Any, title: str | None = "Trains", **more: Any) -> str:
    heading = Heading(THREAD, title, MOMENT, MOMENT)
    held = {"others": {}, "waits_for": [], **more}
    return "".join(conversation_markdown(Conversation(heading, list(messages), **held)))


def outside_of_fences(text: str) -> list[str]:
    """The lines that stand in no block of code, as CommonMark tells them apart."""
    lines, fence = [], None
    for line in text.split("\n"):
        opening = FENCE.match(line)
        if fence is None and opening:
            fence = opening[1]
        elif fence is None:
            lines.append(line)
        elif re.fullmatch(rf"`{{{len(fence)},}} *", line):
            fence = None
    assert fence is None
    return lines


def result(text: Any, **told: Any) -> ToolMessage:
    metadata = {METADATA: {"server": "tickets", "tool": "open", **told}}
    return ToolMessage(text, tool_call_id="1", name="tickets__open", response_metadata=metadata)


class TestAConversation:
    @pytest.mark.parametrize("values", [1000, 100_000], ids=["some", "many"])
    def test_is_not_much_longer_than_what_it_holds(self, values: int) -> None:
        deep: Any = [1] * values
        for _ in range(90):
            deep = [deep]
        text = markdown(HumanMessage([{"type": "chart", "points": deep}]))
        assert len(text) < 8 * values + 2000

    def test_says_who_said_what_and_when_it_was(self) -> None:
        call = {"name": "tickets__open", "args": {"title": "Türöffner"}, "id": "1"}
        text = markdown(
            SystemMessage("Be brief."),
            HumanMessage("Open a ticket.\nPlease."),
            AIMessage("I will.", tool_calls=[call]),
            result("Ticket 7", outcome="ok"),
            AIMessage("It is *number 7*."),
        )
        assert text.startswith(
            "# Trains\n\n"
            f"- Conversation `{THREAD}`\n"
            "- Begun 2026-03-01 10:15:00 UTC\n"
            "- Last changed 2026-03-01 10:15:00 UTC\n\n"
        )
        wanted = [
            "## System\n\n> Be brief.\n",
            "## You\n\n> Open a ticket.\n> Please.\n",
            "## Assistant\n\n> I will.\n",
            '### Tool call `tickets__open`\n\n```json\n{\n  "title": "Türöffner"\n}\n```\n',
            "### Result of `tickets__open`\n\nIt went well.\n\n```text\nTicket 7\n```\n",
            "## Assistant\n\n> It is *number 7*.\n",
        ]
        places = [text.index(each) for each in wanted]
        assert places == sorted(places)

    @pytest.mark.parametrize("outcome", list(Outcome))
    def test_says_what_became_of_each_call(self, outcome: Outcome) -> None:
        plain, told = markdown(result("x")), markdown(result("x", outcome=outcome.value))
        said = set(told.splitlines()) - set(plain.splitlines())
        assert len(said) == 1
        if outcome is Outcome.REJECTED:
            assert said == {"You did not let it be made."}

    def test_says_what_was_otherwise_than_one_may_think(self) -> None:
        text = markdown(result("done", outcome="ok", notes=["edited", "unknown"]))
        assert "The person changed this call's arguments; it was made with theirs.\n" in text
        assert "unknown" not in text

    def test_of_a_graph_of_the_operators_holds_the_rest_as_well(self) -> None:
        text = markdown({"mine": "own kind"}, others={"plan": ["a", "b"]})
        assert '## Message\n\n```json\n{\n  "mine": "own kind"\n}\n```\n' in text
        assert '## What else it holds\n\n```json\n{\n  "plan": [' in text

    def test_says_what_it_waits_for(self) -> None:
        text = markdown(waits_for=[{"kind": "call", "tool": "open"}])
        assert "## Waiting for you\n\n```json\n" in text

    def test_without_a_title_says_so(self) -> None:
        assert markdown(title=None).startswith("# A conversation without a title\n")

    @pytest.mark.parametrize("told", [None, "x", {"outcome": {}, "notes": [[]]}, {"notes": 1}])
    def test_takes_whatever_a_message_says_of_itself(self, told: Any) -> None:
        message = ToolMessage("done", tool_call_id="1", response_metadata={METADATA: told})
        assert "```text\ndone\n```" in markdown(message)


class TestAnImage:
    def test_that_is_in_the_conversation_is_shown(self) -> None:
        block = {"type": "image_url", "image_url": {"url": PIXEL}}
        assert f"![Image]({PIXEL})\n" in markdown(HumanMessage([block]))
        given = {"type": "image", "base64": "iVBORw0KGgo=", "mime_type": "image/png"}
        assert f"![Image]({PIXEL})\n" in markdown(AIMessage([given]))

    @pytest.mark.parametrize(
        "url",
        [
            "https://tracker.test/pixel.png",
            "data:image/svg+xml;base64,PHN2Zz4=",
            "data:image/png;base64,AAAA)\n# Owned",
            "data:text/html,<script>",
        ],
    )
    def test_that_is_elsewhere_is_named_and_not_fetched(self, url: str) -> None:
        text = markdown(HumanMessage([{"type": "image_url", "image_url": url}]))
        assert "![" not in text
        assert "[Image: `" in text
        assert "# Owned" not in text.splitlines()


class TestWhatWasWritten:
    @pytest.mark.parametrize(
        "text",
        [
            "```\n# Not mine",
            "````\n```",
            "~~~",
            "a\r\n## Assistant\r> I said so",
            "<!-- \n\n<script>",
            "    indented\n\n- list\n\n\n# heading",
            "\x1b[31mred\x00\x9b",
            "\ud800 alone",
        ],
    )
    def test_stays_in_its_place(self, text: str) -> None:
        written = markdown(HumanMessage(text), result(text), AIMessage(text))
        written.encode()
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", written)
        headings = [line for line in outside_of_fences(written) if line.startswith("#")]
        assert headings == [
            "# Trains",
            "## You",
            "### Result of `tickets__open`",
            "## Assistant",
        ]

    @given(st.text())
    def test_cannot_end_its_block(self, text: str) -> None:
        assert outside_of_fences(fenced(text)) == [""]

    @given(st.text())
    def test_is_quoted_line_by_line(self, text: str) -> None:
        assert all(line.startswith(">") for line in quoted(text).split("\n")[:-1])

    @given(st.text())
    def test_in_a_heading_is_words_on_one_line(self, text: str) -> None:
        for line in (words(text), code(text)):
            assert "\n" not in line
            assert "\r" not in line
        unmeant = re.sub(r"\\.", "", words(text))
        assert not set(unmeant) & set("`*_[]<>#!")

    def test_in_the_name_of_a_tool_stays_code(self) -> None:
        call = {"name": "x`](http://a.b)\n# y", "args": {}, "id": "1"}
        text = markdown(AIMessage("", tool_calls=[call]))
        assert "### Tool call ``x`](http://a.b) # y``\n" in text
