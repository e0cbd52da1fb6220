"""What a server answered, as the content of a message."""

from __future__ import annotations

import base64
from typing import Any

import mcp_types as types
import pytest

from app.tools.mcp.results import (
    CUT,
    MOST_CHARACTERS,
    MOST_IMAGE_BYTES,
    NOTHING,
    Answer,
    Room,
    read_result,
)
from app.tools.redaction import Redactor
from app.tools.servers import Credential, HttpTransport, McpServer

SERVER = McpServer("notes", HttpTransport("https://notes.test/mcp"))
KEY = "canary-0123456789"
REDACTOR = Redactor(SERVER, Credential(1, headers={"Authorization": f"Bearer {KEY}"}))
PNG = base64.b64encode(b"\x89PNG").decode()


def read(*content: types.ContentBlock, structured: Any = None, is_error: bool = False) -> Answer:
    result = types.CallToolResult(
        content=list(content), structured_content=structured, is_error=is_error
    )
    return read_result(result, REDACTOR)


def said(text: str) -> types.TextContent:
    return types.TextContent(text=text)


class TestText:
    def test_is_the_content(self) -> None:
        assert read(said("a"), said("b")) == Answer("a\n\nb", is_error=False, is_cut=False)

    def test_of_an_error_is_one(self) -> None:
        assert read(said("no such file"), is_error=True).is_error

    def test_that_is_missing_is_said_to_be(self) -> None:
        assert read().content == NOTHING

    def test_can_be_stored(self) -> None:
        assert read(said("a\x00b\ud800c")).content == "ab?c"

    def test_has_no_secret_in_it(self) -> None:
        assert read(said(f"your key is {KEY}")).content == "your key is [redacted]"


class TestAResultThatIsTooLong:
    def test_is_cut_and_says_so(self) -> None:
        answer = read(said("x" * 10_000_000))
        assert answer.is_cut
        assert answer.content == "x" * MOST_CHARACTERS + f"\n\n{CUT}"

    def test_is_bounded_over_all_of_its_parts(self) -> None:
        answer = read(*(said("x" * 30_000) for _ in range(1000)))
        assert answer.is_cut
        assert len(str(answer.content)) < MOST_CHARACTERS + 500

    @pytest.mark.parametrize("shift", range(0, len(KEY) + 2, 3))
    @pytest.mark.parametrize("before", ["x", f"{KEY} "])
    def test_is_not_cut_within_a_secret(self, shift: int, before: str) -> None:
        filled = (before * 2000).ljust(MOST_CHARACTERS - shift, "x")
        answer = read(said(filled + KEY * 3 + "y" * 10_000_000))
        assert "canary" not in str(answer.content)
        assert KEY[-5:] not in str(answer.content)

    def test_of_a_structure_is_bounded_in_every_direction(self) -> None:
        deep: Any = "bottom"
        for _ in range(200):
            deep = [deep]
        for value in (
            deep,
            ["x"] * 1_000_000,
            "x" * 10_000_000,
            {str(n): n for n in range(50_000)},
        ):
            answer = read(structured={"a": value})
            assert answer.is_cut
            assert len(str(answer.content)) < MOST_CHARACTERS + 500


class TestAStructuredResult:
    def test_is_told_where_there_is_no_text(self) -> None:
        assert read(structured={"size": 1, "é": KEY}).content == '{"size": 1, "é": "[redacted]"}'

    def test_is_told_beside_a_text_that_says_something_else(self) -> None:
        assert read(said("Found one."), structured={"id": 7}).content == 'Found one.\n\n{"id": 7}'

    @pytest.mark.parametrize(
        ("text", "structured"),
        [('{"id": 7}', {"id": 7}), ("7", {"result": 7}), ("seven", {"result": "seven"})],
    )
    def test_is_not_told_twice(self, text: str, structured: dict[str, Any]) -> None:
        assert read(said(text), structured=structured).content == text


class TestOtherThings:
    def test_are_shown_where_they_are_images(self) -> None:
        content = read(said("here"), types.ImageContent(data=PNG, mime_type="image/png")).content
        assert content == [
            {"type": "text", "text": "here"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        ]

    @pytest.mark.parametrize(
        ("data", "kind"),
        [
            ("A" * (MOST_IMAGE_BYTES * 2), "image/png"),
            (PNG, "image/svg+xml"),
            ("no base64!", "image/png"),
        ],
        ids=["too large", "a kind that runs code", "broken"],
    )
    def test_are_named_where_they_cannot_be_shown(self, data: str, kind: str) -> None:
        content = read(types.ImageContent(data=data, mime_type=kind)).content
        assert str(content).startswith(f"[Left out: image, {kind}, ")

    def test_are_named_where_nobody_can_hear_them(self) -> None:
        content = read(types.AudioContent(data=PNG, mime_type="audio/wav")).content
        assert content == "[Left out: audio, audio/wav, 6 bytes]"

    def test_that_are_embedded_are_read(self) -> None:
        text = types.TextResourceContents(uri="file:///a.txt", text=f"words and {KEY}")
        blob = types.BlobResourceContents(uri="file:///b", blob=PNG, mime_type="application/pdf")
        content = read(*(types.EmbeddedResource(resource=each) for each in (text, blob))).content
        assert content == (
            "[Resource: file:///a.txt]\n\nwords and [redacted]\n\n"
            "[Resource: file:///b]\n\n[Left out: content, application/pdf, 6 bytes]"
        )

    def test_that_are_linked_are_named(self) -> None:
        link = types.ResourceLink(name="a", uri=f"https://notes.test/a?key={KEY}")
        assert read(link).content == "[Link: a - https://notes.test/a?key=[redacted]]"


class TestASecretWhereNoTextIs:
    @pytest.mark.parametrize(
        "block",
        [
            types.ImageContent(data=KEY.replace("-", "+") + "AAA", mime_type="image/png"),
            types.ImageContent(
                data=base64.b64encode(f"PNG{KEY}".encode()).decode(), mime_type="image/png"
            ),
            types.AudioContent(data="", mime_type="x" * 50 + KEY),
        ],
        ids=["instead of base64", "within", "at a cut"],
    )
    def test_is_left_out(self, block: types.ContentBlock) -> None:
        key = KEY.replace("-", "+")
        redactor = Redactor(SERVER, Credential(1, headers={"A": f"Bearer {KEY}", "B": key}))
        shown = str(read_result(types.CallToolResult(content=[block]), redactor).content)
        assert shown.startswith("[Left out: ")
        assert "canary" not in shown


class TestManyResultsOfOneRun:
    def test_hold_together_what_there_is_room_for(self) -> None:
        image = base64.b64encode(b"x" * MOST_IMAGE_BYTES).decode()
        shown: list[Any] = [
            said("y" * MOST_CHARACTERS),
            types.ImageContent(data=image, mime_type="image/png"),
        ]
        room = Room(characters=2 * MOST_CHARACTERS, image_bytes=2 * MOST_IMAGE_BYTES)
        answers = [
            read_result(types.CallToolResult(content=shown), REDACTOR, room) for _ in range(10)
        ]
        held = sum(len(str(each.content)) for each in answers)
        assert held < 2 * MOST_CHARACTERS + 3 * MOST_IMAGE_BYTES + 10_000
        assert [each.is_cut for each in answers[-3:]] == [True] * 3
