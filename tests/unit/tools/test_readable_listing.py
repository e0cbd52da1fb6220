"""Of what a server lets be read, what it lists is kept within bounds, and fit to be shown."""

from __future__ import annotations

from typing import Any

import mcp_types
import pytest

from app.tools.pool.readable_listing import (
    MAX_BYTES,
    MAX_DESCRIPTION,
    MAX_LISTED,
    MAX_NAME,
    MAX_TITLE,
    MAX_URI,
    Kept,
    prompts_within_bounds,
    resources_within_bounds,
)
from app.tools.readable import ListedPrompt, ListedResource
from app.tools.redaction import Redactor
from app.tools.servers import Credential, McpServer, StdioTransport

SECRET = "canary-0123456789"
REDACTOR = Redactor(
    McpServer("any", StdioTransport("any")), Credential(1, headers={"X-Key": SECRET})
)


def resource(uri: str, name: str = "any", **facts: Any) -> mcp_types.Resource:
    return mcp_types.Resource(uri=uri, name=name, **facts)


def prompt(name: str, **facts: Any) -> mcp_types.Prompt:
    return mcp_types.Prompt(name=name, **facts)


def resources(*said: mcp_types.Resource) -> Kept[ListedResource]:
    return resources_within_bounds(said, REDACTOR)


def prompts(*said: mcp_types.Prompt) -> Kept[ListedPrompt]:
    return prompts_within_bounds(said, REDACTOR)


class TestResources:
    def test_are_kept_as_they_were_said(self) -> None:
        said = resource("note://1", "one", title="One", description="The 1st.", mime_type="text/x")
        (listed,) = resources(said).listed
        assert listed == ListedResource("note://1", "one", "One", "The 1st.", "text/x")

    @pytest.mark.parametrize("uri", ["javascript:alert(1)", "file:///etc/passwd", "any words"])
    def test_may_be_known_by_anything_that_can_be_written(self, uri: str) -> None:
        assert [each.uri for each in resources(resource(uri)).listed] == [uri]

    @pytest.mark.parametrize(
        "uri",
        ["", "x" * (MAX_URI + 1), "a:\n", "a:\u202egnp", "a:\u200b", f"a:{SECRET}", "a:\ud800"],
        ids=["none", "long", "line", "direction", "hidden", "secret", "half"],
    )
    def test_are_left_out_where_they_cannot_be_asked_for_by_it(self, uri: str) -> None:
        kept = resources(resource(uri), resource("b:"))
        assert ([each.uri for each in kept.listed], kept.left_out) == (["b:"], 1)

    def test_are_each_there_once(self) -> None:
        kept = resources(resource("a:", "first"), resource("a:", "second"))
        assert [each.name for each in kept.listed] == ["first"]

    def test_are_as_many_as_there_may_be(self) -> None:
        kept = resources(*(resource(f"a:{n}") for n in range(MAX_LISTED + 5)))
        assert (len(kept.listed), kept.left_out) == (MAX_LISTED, 5)

    def test_of_tens_of_thousands_are_not_looked_through(self) -> None:
        kept = resources(*(resource("same:") for _ in range(5000)), resource("last:"))
        assert ([each.uri for each in kept.listed], kept.left_out) == (["same:"], 5000)

    def test_do_not_take_more_room_together_than_there_is(self) -> None:
        long = {"description": "x" * MAX_DESCRIPTION, "title": "y" * MAX_TITLE}
        uris = [f"a:{n}:{'z' * 900}" for n in range(MAX_LISTED)]
        kept = resources(*(resource(uri, **long) for uri in uris))
        assert 0 < len(kept.listed) < MAX_LISTED
        assert len(kept.listed) * 1600 < MAX_BYTES


class TestWhatPeopleSee:
    def test_is_one_line_that_hides_nothing_and_turns_nothing_around(self) -> None:
        said = resource(
            "a:", "ex\u202egpj.exe", title="a\x1b[31m\nb\u2066c", description="d\r\n\x00e"
        )
        (listed,) = resources(said).listed
        shown = (listed.name, listed.title, listed.description)
        assert shown == ("exgpj.exe", "a[31m bc", "d e")

    def test_is_of_a_bounded_length(self) -> None:
        huge = "x" * 1_000_000
        said = resource("a:", huge, title=huge, description=huge, mime_type=huge)
        (listed,) = resources(said).listed
        lengths = (len(listed.name), len(listed.title or ""), len(listed.description))
        assert lengths == (MAX_NAME, MAX_TITLE, MAX_DESCRIPTION)

    def test_is_what_it_is_known_by_where_the_server_calls_it_nothing(self) -> None:
        assert resources(resource("note://1", "\u200b")).listed[0].name == "note://1"

    @pytest.mark.parametrize(
        "told",
        [SECRET, f"see {SECRET}!", "\u200b".join(SECRET), "-" * 150 + SECRET],
        ids=["plain", "within", "hidden", "at the end"],
    )
    def test_says_nothing_of_the_persons_credential(self, told: str) -> None:
        of_resource = resource("a:", told, title=told, description=told, mime_type=told)
        argument = mcp_types.PromptArgument(name=told)
        of_prompt = prompt("b", title=told, description=told, arguments=[argument])
        kept = repr((resources(of_resource).listed, prompts(of_prompt).listed))
        assert SECRET not in kept
        assert SECRET[:-1] not in kept


class TestPrompts:
    def test_say_what_they_are_to_be_told(self) -> None:
        wanted = [
            mcp_types.PromptArgument(name="what", required=True),
            mcp_types.PromptArgument(name="how"),
        ]
        kept = prompts(prompt("tell", arguments=wanted), prompt("say", arguments=wanted[1:]))
        assert [each.needs_arguments for each in kept.listed] == [True, False]

    @pytest.mark.parametrize("name", ["", "x" * (MAX_NAME + 1), "a\nb", f"a{SECRET}"])
    def test_are_left_out_where_they_cannot_be_asked_for_by_name(self, name: str) -> None:
        assert [each.name for each in prompts(prompt(name), prompt("good")).listed] == ["good"]

    def test_that_want_to_be_told_too_much_are_left_out(self) -> None:
        many = [mcp_types.PromptArgument(name=str(n), required=True) for n in range(100)]
        assert prompts(prompt("greedy", arguments=many)).listed == ()
