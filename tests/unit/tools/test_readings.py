"""What was read of a server becomes text: of a bounded length, without what nobody is to read."""

from __future__ import annotations

import base64
from typing import Any, Literal

import mcp_types as types
import pytest

from app.tools.mcp.readings import CUT, MOST_PARTS, NOTHING, text_of_prompt, text_of_resource
from app.tools.redaction import Redactor
from app.tools.servers import Credential, McpServer, StdioTransport

SECRET = "canary-0123456789"
REDACTOR = Redactor(
    McpServer("any", StdioTransport("any")), Credential(1, headers={"X-Key": SECRET})
)
MOST = 1000
PICTURE = base64.b64encode(b"x" * 300).decode()


def text(said: str) -> types.TextResourceContents:
    return types.TextResourceContents(uri="a:", text=said)


def resource(*contents: Any, most: int = MOST) -> str:
    return text_of_resource(types.ReadResourceResult(contents=list(contents)), REDACTOR, most)


def said_by(role: Literal["user", "assistant"], content: Any) -> types.PromptMessage:
    if isinstance(content, str):
        content = types.TextContent(text=content)
    return types.PromptMessage(role=role, content=content)


def prompt(*messages: types.PromptMessage) -> str:
    return text_of_prompt(types.GetPromptResult(messages=list(messages)), REDACTOR, MOST)


class TestAResource:
    def test_is_its_texts(self) -> None:
        assert resource(text("one"), text("two")) == "one\n\ntwo"

    def test_that_is_no_text_is_named_by_its_kind_and_size(self) -> None:
        blob = types.BlobResourceContents(uri="a:", blob=PICTURE, mime_type="image/png")
        assert resource(blob) == "[Left out: content, image/png, 300 bytes]"

    def test_that_says_nothing_says_so(self) -> None:
        assert resource() == resource(text("")) == NOTHING

    @pytest.mark.parametrize("letter", ["x", "ü", "\U0001f600"])
    def test_is_cut_where_it_is_too_long_and_says_so(self, letter: str) -> None:
        found = resource(text(letter * 5000))
        assert MOST - 8 < len(found.encode()) <= MOST
        assert found.endswith(CUT)
        assert found.startswith(letter * 100)

    def test_is_whole_where_it_just_fits(self) -> None:
        room = MOST - len(f"\n\n{CUT}")
        assert resource(text("x" * room)) == "x" * room

    def test_of_too_many_parts_is_cut(self) -> None:
        found = resource(*(text("x") for _ in range(MOST_PARTS + 1)))
        assert (found.count("x"), found.endswith(CUT)) == (MOST_PARTS, True)

    def test_can_be_stored(self) -> None:
        assert resource(text("a\x00b\ud800c")) == "ab?c"


class TestAPrompt:
    def test_of_one_message_is_what_that_says(self) -> None:
        assert prompt(said_by("user", "Be kind.")) == "Be kind."

    def test_of_several_says_who_speaks(self) -> None:
        found = prompt(said_by("user", "Hello"), said_by("assistant", "Yes?"))
        assert found == "user: Hello\n\nassistant: Yes?"

    def test_has_what_was_put_into_it_and_names_what_is_no_text(self) -> None:
        found = prompt(
            said_by("user", types.EmbeddedResource(resource=text("inside"))),
            said_by("user", types.ImageContent(data=PICTURE, mime_type="image/png")),
            said_by("user", types.AudioContent(data=PICTURE, mime_type="audio/wav")),
            said_by("user", types.ResourceLink(uri="javascript:alert(1)", name="a\u202elink")),
        )
        assert found.splitlines()[::2] == [
            "user: inside",
            "user: [Left out: image, image/png, 300 bytes]",
            "user: [Left out: audio, audio/wav, 300 bytes]",
            "user: [Link: alink]",
        ]


class TestThePersonsCredential:
    @pytest.mark.parametrize("before", range(0, 1000, 37))
    def test_is_in_nothing_that_is_read_wherever_it_is_cut(self, before: int) -> None:
        padded = f"{'-' * before}{SECRET}{'-' * 2000}"
        for found in (resource(text(padded)), prompt(said_by("user", padded))):
            assert SECRET[:6] not in found

    def test_is_not_in_the_name_of_a_kind(self) -> None:
        blob = types.BlobResourceContents(uri="a:", blob=PICTURE, mime_type=SECRET)
        assert SECRET not in resource(blob)
