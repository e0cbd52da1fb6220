"""Which tools a model is told of, where its window is too small for all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import NoReturn

from app.tools.calls import AgentTool
from app.tools.servers import Unavailable
from app.worker.tool_room import MOST_MISFITS, within_room


def named(name: str, server: str | None = None, description: str = "Does it.") -> AgentTool:
    async def work() -> None:
        pass

    work.__name__, work.__doc__ = name, description
    tool = AgentTool.from_function(work, read_only=True, timeout_seconds=1)
    return replace(tool, server=server)


def offered(*tools: AgentTool) -> Iterator[tuple[str, Callable[[], list[AgentTool]]]]:
    for tool in tools:
        yield tool.server or "", partial(list, [tool])


OURS = {"remember": named("remember")}
LONG = "word " * 1000


class TestRoom:
    def test_is_enough_for_all_as_a_rule(self) -> None:
        theirs = [named("a__x", "a"), named("b__x", "b")]
        tools, missing = within_room(OURS, offered(*theirs), 1000)
        assert (list(tools), missing) == (["remember", "a__x", "b__x"], [])

    def test_is_left_for_others_by_what_takes_too_much(self) -> None:
        theirs = [named("a__x", "a", LONG), named("a__y", "a"), named("b__x", "b")]
        tools, missing = within_room(OURS, offered(*theirs), 500)
        assert list(tools) == ["remember", "a__y", "b__x"]
        assert missing == [Unavailable("a", "no_room")]

    def test_is_ours_first(self) -> None:
        tools, missing = within_room(OURS, offered(named("a__x", "a")), 0)
        assert (list(tools), missing) == (["remember"], [Unavailable("a", "no_room")])

    def test_is_never_taken_from_a_tool_of_ours(self) -> None:
        tools, missing = within_room(OURS, offered(named("remember", "a")), 1000)
        assert (tools, missing) == (OURS, [])

    def test_is_looked_for_no_more_once_many_did_not_fit(self) -> None:
        def made() -> NoReturn:
            raise AssertionError("nobody is to look at it")

        misfits = [named(f"a__{n}", "a", LONG) for n in range(MOST_MISFITS)]
        tools, missing = within_room(OURS, [*offered(*misfits), ("b", made), ("c", made)], 500)
        assert tools == OURS
        assert [each.server for each in missing] == ["a", "b", "c"]
