"""One slow source is not an error: the others' answers come, in order and in time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from app.mentions.refs import Kind, Ref
from app.mentions.search import AT_ONCE, LONGEST_TITLE, MentionSearch
from app.mentions.sources import Asked, Found, SourceFailed
from tenancy.errors import TooManyRequests
from tenancy.principal import Owner

LONG = 600.0
SECRET = "the canary sings at midnight"


def somebody() -> Owner:
    return cast("Owner", SimpleNamespace(user_id=uuid4()))


@dataclass
class Shelf:
    """A source that answers as a test says, and counts who asks."""

    source: str = "threads"
    answer: Callable[[], Awaitable[Sequence[Found]]] | None = None
    kind: Kind = "thread"
    provider: str = "stoa"
    display_name: str = "Chats"
    asked: list[Asked] = field(default_factory=list)
    within: int = 0
    most: int = 0
    cancelled: int = 0
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    async def find(self, asked: Asked) -> Sequence[Found]:
        self.asked.append(asked)
        self.within += 1
        self.most = max(self.most, self.within)
        self.begun.set()
        try:
            return await self.answer() if self.answer is not None else [thing(self.source)]
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.within -= 1


def thing(name: str, title: str = "A title", url: str | None = None) -> Found:
    return Found(Ref("thread", name), title, url)


async def for_ever() -> Sequence[Found]:
    await asyncio.Event().wait()
    raise AssertionError


def failing(error: Exception) -> Callable[[], Awaitable[Sequence[Found]]]:
    async def fail() -> Sequence[Found]:
        raise error

    return fail


class TestASearch:
    async def test_has_a_group_of_each_source_in_their_order(self) -> None:
        first, second = Shelf("one"), Shelf("two")
        asked = Asked(somebody(), "q", 3)
        groups = await MentionSearch([first, second]).find(asked)
        assert [(each.source.source, each.status) for each in groups] == [
            ("one", "ok"),
            ("two", "ok"),
        ]
        assert first.asked == second.asked == [asked]

    @pytest.mark.parametrize(
        ("answer", "status"),
        [
            (for_ever, "timeout"),
            (failing(RuntimeError(SECRET)), "upstream_error"),
            (failing(TooManyRequests()), "rate_limited"),
            (failing(SourceFailed("rate_limited")), "rate_limited"),
            (failing(SourceFailed("unauthorized")), "unauthorized"),
        ],
        ids=["hangs", "fails", "ours limited", "limited", "unauthorized"],
    )
    async def test_is_answered_though_one_source_is_not_well(
        self, answer: Any, status: str
    ) -> None:
        bad, good = Shelf("bad", answer), Shelf("good")
        with capture_logs() as lines:
            groups = await MentionSearch([bad, good], seconds=0.05).find(
                Asked(somebody(), SECRET, 5)
            )
        assert [each.status for each in groups] == [status, "ok"]
        assert lines == [
            {
                "event": "a source of mentions failed",
                "log_level": "warning",
                "source": "bad",
                "provider": "stoa",
                "kind": "thread",
                "status": status,
            }
        ]

    @pytest.mark.parametrize("status", ["not_configured", "unsupported_scope"])
    async def test_says_what_a_source_is_not_for_and_nobody_is_warned(self, status: Any) -> None:
        with capture_logs() as lines:
            groups = await MentionSearch([Shelf(answer=failing(SourceFailed(status)))]).find(
                Asked(somebody(), "q", 5)
            )
        assert [each.status for each in groups] == [status]
        assert lines == []

    async def test_finds_nothing_twice_and_nothing_too_long(self) -> None:
        async def many() -> Sequence[Found]:
            return [thing(f"{n % 3}", "x\n" * LONGEST_TITLE, "/" * 1000) for n in range(9)]

        groups = await MentionSearch([Shelf("one", many), Shelf("two", many)]).find(
            Asked(somebody(), "q", 5)
        )
        assert [str(found.ref) for found in groups[0].results] == [
            "thread:0",
            "thread:1",
            "thread:2",
        ]
        assert groups[1].results == ()
        assert {len(found.title) for found in groups[0].results} == {LONGEST_TITLE}
        assert {found.url for found in groups[0].results} == {None}

    async def test_asks_four_at_once(self) -> None:
        may_answer = asyncio.Event()
        within, most = 0, 0

        async def answer() -> Sequence[Found]:
            nonlocal within, most
            within += 1
            most = max(most, within)
            await may_answer.wait()
            within -= 1
            return []

        shelves = [Shelf(f"s{n}", answer) for n in range(6)]
        searching = asyncio.create_task(
            MentionSearch(shelves, seconds=LONG).find(Asked(somebody(), "q", 5))
        )
        for shelf in shelves[:AT_ONCE]:
            await shelf.begun.wait()
        may_answer.set()
        assert [each.status for each in await searching] == ["ok"] * 6
        assert most == AT_ONCE

    async def test_asks_a_source_once_at_a_time_for_one_person(self) -> None:
        may_answer = asyncio.Event()

        async def answer() -> Sequence[Found]:
            await may_answer.wait()
            return []

        shelf = Shelf(answer=answer)
        search = MentionSearch([shelf], seconds=LONG)
        ada, bob = somebody(), somebody()
        searching = [
            asyncio.create_task(search.find(Asked(who, "q", 5))) for who in (ada, ada, bob)
        ]
        while len(shelf.asked) < 2:  # noqa: ASYNC110 - hers and his
            await asyncio.sleep(0)
        assert shelf.within == 2
        may_answer.set()
        await asyncio.gather(*searching)
        assert len(shelf.asked) == 3
        assert shelf.most == 2
        assert search._turns == {}

    async def test_gives_up_all_sources_with_whoever_asked(self) -> None:
        shelves = [Shelf(f"s{n}", for_ever) for n in range(3)]
        search = MentionSearch(shelves, seconds=LONG)
        searching = asyncio.create_task(search.find(Asked(somebody(), "q", 5)))
        for shelf in shelves:
            await shelf.begun.wait()
        searching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await searching
        assert [shelf.cancelled for shelf in shelves] == [1, 1, 1]
        assert search._turns == {}
