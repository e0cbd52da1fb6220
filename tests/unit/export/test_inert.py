"""What people and the model wrote is shown as Markdown, and nobody is told that it is."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from app.export.markup import quoted

IMAGE = "![a cat](https://elsewhere.example/?said=secret)"
READERS = [MarkdownIt("commonmark"), MarkdownIt("default", {"html": True})]
PIECES = [
    *("`", "``", "```", "~~~", "````", "\n", "\n", "  ", "    ", "\t", "- ", "> ", "1. ", "|"),
    *("\\", "\\\\", IMAGE, IMAGE, "<img src=x>", "<b", "<!--", "-->", "<div>", "a", "|-|\n"),
    *("[a]: /u\n", "[", "]", "(", '"', "<http://a", "`>", "\u2028", "\u00a0", "![a]", "===\n"),
]


def fetched(markdown: str, reader: MarkdownIt) -> list[str]:
    """What whoever shows it would ask others for."""
    found: list[Token] = []
    for block in reader.parse(markdown):
        found += [block, *(block.children or ())]
    kinds = ("image", "html_inline", "html_block")
    return [each.content for each in found if each.type in kinds]


class TestAQuotation:
    @given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
    def test_has_nothing_fetched(self, text: str) -> None:
        for reader in READERS:
            assert fetched(quoted(text), reader) == []

    @pytest.mark.parametrize(
        "text",
        [
            IMAGE,
            f"\\{IMAGE}",
            f"- one\n  ```\n{IMAGE}",
            f"~~~\n~~~\u00a0\n~~~\n{IMAGE}",
            f"A `\n` {IMAGE} `",
            f"|a|b|\n|-|-|\n|`|{IMAGE}`|",
            f"```\u2028```\n{IMAGE}",
            '<img src="https://elsewhere.example">',
            '\\<img src="https://elsewhere.example">',
        ],
    )
    def test_has_none_where_it_looks_like_code_or_is_escaped(self, text: str) -> None:
        for reader in READERS:
            assert fetched(quoted(text), reader) == []

    @pytest.mark.parametrize(
        "text",
        [
            "Say `vec![1]` and `List<String>`, or 1 < 2.",
            "```rust\nlet all = vec![1];\n```\nand ``a`b<c>``",
            "~~~html\n<img src=x>\n~~~",
        ],
    )
    def test_is_as_it_was_written_where_there_is_none(self, text: str) -> None:
        assert quoted(text) == re.sub("^", "> ", text, flags=re.MULTILINE) + "\n"

    def test_still_says_what_was_written(self) -> None:
        assert quoted(IMAGE) == "> !\\[a cat](https://elsewhere.example/?said=secret)\n"
        assert quoted("a <b>") == "> a &lt;b>\n"
