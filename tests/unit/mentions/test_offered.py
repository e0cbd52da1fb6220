"""What servers offer is found by what they listed last, best first."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import pytest

from app.memory.memories import FoundMemory, Memory
from app.mentions.checking import listed_by
from app.mentions.matching import best
from app.mentions.offered import PromptSource, ResourceSource, ToolSource
from app.mentions.own import MemorySource
from app.mentions.refs import Ref, parse_ref
from app.mentions.sources import Asked, SourceFailed
from app.tools.readable import ListedPrompt, ListedResource, PromptArgument
from app.tools.servers import ListedTool

OWNER = cast("Any", SimpleNamespace(user_id=uuid4()))


class Servers:
    def __init__(self, *servers: Any) -> None:
        self._servers = servers

    async def of(self, owner: object) -> Sequence[Any]:
        assert owner is OWNER
        return self._servers


def server(name: str, state: str = "available", **listed: Any) -> Any:
    rule = SimpleNamespace(name=name, offers=lambda tool: tool != "denied")
    found = {"resources": (), "prompts": (), "listing": None, **listed}
    return SimpleNamespace(server=rule, state=state, **found)


def asked(query: str, limit: int = 5) -> Asked:
    return Asked(OWNER, query, limit)


NOTES = server(
    "notes",
    resources=(
        ListedResource("file:///a:b", "plan.md", "Garden plan"),
        ListedResource("file:///c", "the plan"),
    ),
    prompts=(
        ListedPrompt("review", "Review a plan"),
        ListedPrompt("needs", "Review with", arguments=(PromptArgument("what", True),)),
    ),
    listing=(ListedTool("plan_day", title="Plan a day"), ListedTool("denied", title="Plan")),
)


class TestOffers:
    async def test_are_found_by_their_titles_and_names(self) -> None:
        found = await ResourceSource(Servers(NOTES)).find(asked("plan"))
        assert [(str(each.ref), each.title, each.offered_by) for each in found] == [
            ("resource:notes:file:///a:b", "Garden plan", "notes"),
            ("resource:notes:file:///c", "the plan", "notes"),
        ]
        assert parse_ref(str(found[0].ref)) == Ref("resource", "file:///a:b", "notes")

    async def test_of_prompts_are_those_that_need_no_arguments(self) -> None:
        found = await PromptSource(Servers(NOTES)).find(asked("review"))
        assert [str(each.ref) for each in found] == ["prompt:notes:review"]

    async def test_of_tools_are_those_that_the_operator_lets_be_used(self) -> None:
        source = ToolSource(Servers(NOTES, server("new")), ["plan_time"])
        assert [str(each.ref) for each in await source.find(asked("plan"))] == [
            "tool:stoa:plan_time",
            "tool:notes:plan_day",
        ]

    @pytest.mark.parametrize("source", [ResourceSource, PromptSource])
    @pytest.mark.parametrize(
        ("servers", "status"),
        [
            ((), "not_configured"),
            ((server("a", "needs_key"), server("b", "needs_authorization")), "unauthorized"),
        ],
        ids=["none", "locked"],
    )
    async def test_are_not_there_for_a_reason(
        self, source: Any, servers: Sequence[Any], status: str
    ) -> None:
        with pytest.raises(SourceFailed) as failed:
            await source(Servers(*servers)).find(asked("plan"))
        assert failed.value.status == status

    async def test_of_one_server_are_found_though_another_one_is_locked(self) -> None:
        found = await ResourceSource(Servers(server("a", "needs_key"), NOTES)).find(asked("c"))
        assert found

    def test_that_may_be_pointed_at_are_those_listed(self) -> None:
        assert {str(ref) for ref in listed_by(NOTES)} == {
            "resource:notes:file:///a:b",
            "resource:notes:file:///c",
            "prompt:notes:review",
            "prompt:notes:needs",
            "tool:notes:plan_day",
        }


class TestMemories:
    async def test_of_the_conversation_that_is_written_in_go_first(self) -> None:
        here, now = uuid4(), cast("Any", None)
        found = [
            FoundMemory(Memory(uuid4(), said, thread, None, now, now), 1.0)
            for said, thread in (("best", None), ("elsewhere", uuid4()), ("here", here))
        ]

        class Memories:
            async def find(self, *_: object) -> list[FoundMemory]:
                return found

        source = MemorySource(cast("Any", Memories()))
        one = await source.find(Asked(OWNER, "q", 5, here))
        assert [(each.title, each.scope == here) for each in one] == [
            ("here", True),
            ("best", False),
            ("elsewhere", False),
        ]
        assert [each.title for each in await source.find(asked("q"))] == [
            "best",
            "elsewhere",
            "here",
        ]


class TestTheBest:
    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ("plan", ["Plan B", "A plan", "explanation", "unplanned"]),
            ("über", ["Uberfahrt"]),
            ("B PLAN", ["Plan B"]),
            ("day", ["birthday_card", "make_day"][::-1]),
            ("nothing", []),
        ],
    )
    def test_begin_with_what_was_typed(self, query: str, found: list[str]) -> None:
        names = [
            *("explanation", "birthday_card", "A plan", "unplanned"),
            *("Uberfahrt", "Plan B", "make_day"),
        ]
        assert best(query, names, lambda name: [name], 10) == found

    def test_are_no_more_than_wanted(self) -> None:
        assert best("a", ["ab", "ba", "a"], lambda name: [name], 2) == ["ab", "a"]
