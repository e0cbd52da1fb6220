"""A thread's title: the first line of the first message."""

from __future__ import annotations

from typing import Any

import pytest

from app.runs.input_rules import title_of
from app.runs.threads import TITLE_LENGTH


class TestATitle:
    @pytest.mark.parametrize(
        ("messages", "title"),
        [
            ([{"type": "human", "content": "Hello\nthere"}], "Hello"),
            ([{"type": "human", "content": "\n  Hello \t there  \n"}], "Hello there"),
            ([{"type": "human", "content": [{"type": "text", "text": "Hello"}]}], "Hello"),
            (["Hello", "there"], "Hello"),
            ("Hello", "Hello"),
            ({"type": "human", "content": "Hello"}, "Hello"),
            ([], None),
        ],
    )
    def test_is_the_first_line(self, messages: Any, title: str | None) -> None:
        assert title_of({"messages": messages}) == title

    def test_is_bounded(self) -> None:
        title = title_of({"messages": ["word " * 100]})
        assert title is not None
        assert len(title) <= TITLE_LENGTH
        assert title.endswith("…")

    def test_needs_a_message(self) -> None:
        assert title_of(None) is None
        assert title_of({"other": 1}) is None
