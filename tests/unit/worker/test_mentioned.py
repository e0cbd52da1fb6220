"""Reading what a message points at: in time, once, and without failing the turn."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from structlog.testing import capture_logs

from app.agent.mentioned import Quoted
from app.connections.reading import ReadingFailed
from app.worker.conversations import MOST_CHARACTERS, Conversations, newest_words
from app.worker.mentioned import FAILED, LATE, MentionReader, TurnMentions
from tenancy.errors import LeaseLost, UserUnavailable
from tenancy.principal import ClaimedRun, UserId

SECRET = "the canary sings at midnight"
RUN = ClaimedRun(UserId(uuid4()), uuid4(), 1)
MEMORY = uuid4()
Reading = Callable[[], Awaitable[str]]


class Library:
    """Reads as a test says, and notes what was asked for."""

    def __init__(self, **readings: Reading) -> None:
        self._readings = readings
        self.asked: list[str] = []

    async def resource(self, run: ClaimedRun, server: str, uri: str) -> str:
        assert run == RUN
        self.asked.append(uri)
        return await self._readings[uri]()


def turn(library: Library, seconds: float = 60.0) -> TurnMentions:
    async def call(run: ClaimedRun, statement: str, *given: Any) -> list[dict[str, Any]]:
        assert run == RUN
        return [{"kind": "memory", "id": id_, "said": "Likes trains."} for id_ in given[1]]

    async def of(run: ClaimedRun) -> list[Any]:
        return []

    services = MentionReader(
        cast("Any", SimpleNamespace(call=call)),
        cast("Any", None),
        cast("Any", SimpleNamespace(of=of)),
        cast("Any", library),
        seconds,
    )
    return services.of_run(RUN, UUID(int=1), {})


async def hang() -> str:
    await asyncio.Event().wait()
    raise AssertionError


async def say() -> str:
    return "said"


def failing(error: Exception) -> Reading:
    async def fail() -> str:
        raise error

    return fail


class TestReading:
    async def test_waits_for_nothing_beyond_its_time(self) -> None:
        mentions = turn(Library(slow=hang, quick=say), seconds=0.05)
        refs = ["resource:s:slow", "resource:s:quick", f"memory:{MEMORY}"]
        assert await mentions.read(refs) == [
            Quoted("resource", "slow", note=LATE),
            Quoted("resource", "quick", "said"),
            Quoted("memory", text="Likes trains."),
        ]

    async def test_of_many_that_hang_takes_no_longer(self) -> None:
        slow = {f"slow{n}": hang for n in range(20)}
        refs = [f"resource:s:{name}" for name in slow]
        found = await turn(Library(**slow), seconds=0.05).read(refs)
        assert {each.note for each in found} == {LATE}

    async def test_says_by_a_code_why_something_was_not_read(self) -> None:
        library = Library(gone=failing(ReadingFailed("unreachable")))
        (found,) = await turn(library).read(["resource:s:gone"])
        assert found == Quoted("resource", "gone", note="It could not be read (unreachable).")

    async def test_goes_on_where_a_fault_of_ours_is_met_and_tells_nobodys_words(self) -> None:
        library = Library(bad=failing(RuntimeError(SECRET)), good=say)
        with capture_logs() as lines:
            found = await turn(library).read(["resource:s:bad", "resource:s:good"])
        assert [each.note or each.text for each in found] == [FAILED, "said"]
        (line,) = lines
        assert (line["log_level"], line["kind"], line["error"]) == (
            "warning",
            "resource",
            "RuntimeError",
        )
        assert SECRET not in json.dumps(lines, default=str)

    @pytest.mark.parametrize("error", [LeaseLost(), UserUnavailable()], ids=["lease", "user"])
    async def test_ends_with_the_run(self, error: Exception) -> None:
        library = Library(one=failing(error), other=say)
        with pytest.raises(type(error)):
            await turn(library).read(["resource:s:one", "resource:s:other"])

    async def test_is_done_once_for_a_message_and_anew_for_another(self) -> None:
        library = Library(a=say, b=say)
        mentions = turn(library)
        a, b = ["resource:s:a", "resource:s:a", "model:m"], ["resource:s:b"]
        for refs in (a, a, b):
            await mentions.read(refs)
        assert library.asked == ["a", "b"]

    async def test_passes_over_what_another_version_has_stored(self) -> None:
        assert await turn(Library()).read(["planet:mars", "", "tool:nothing"]) == []


class TestConversations:
    async def test_of_somebody_elses_wait_for_one_of_a_persons_at_most(self) -> None:
        greedy, other = (ClaimedRun(UserId(uuid4()), uuid4(), 1) for _ in range(2))
        read: list[ClaimedRun] = []
        may_go_on, has_begun = asyncio.Event(), asyncio.Event()

        async def state(owner: ClaimedRun, thread_id: UUID) -> dict[str, Any]:
            read.append(owner)
            has_begun.set()
            await may_go_on.wait()
            return {"values": {}}

        conversations = Conversations(cast("Any", SimpleNamespace(state=state)))
        async with asyncio.TaskGroup() as group:
            for _ in range(20):
                group.create_task(conversations.newest(greedy, str(uuid4())))
            await has_begun.wait()
            group.create_task(conversations.newest(other, str(uuid4())))
            await asyncio.sleep(0)  # it stands in line
            may_go_on.set()
        assert read.index(other) <= 2
        assert len(read) == 21


class TestTheNewestWords:
    def test_are_the_persons_and_the_assistants_in_their_order(self) -> None:
        messages = [
            HumanMessage("Hi"),
            AIMessage("", tool_calls=[{"name": "t", "args": {}, "id": "1"}]),
            ToolMessage(SECRET, tool_call_id="1"),
            AIMessage([{"type": "text", "text": "Hello"}]),
        ]
        assert newest_words({"messages": messages}) == "person: Hi\nassistant: Hello"

    def test_are_the_last_of_many(self) -> None:
        messages = [*(HumanMessage("x" * 1000) for _ in range(100)), AIMessage("The end")]
        words = newest_words({"messages": messages})
        assert words.endswith("\nassistant: The end")
        assert len(words) <= MOST_CHARACTERS

    def test_of_one_that_is_too_long_are_its_end(self) -> None:
        words = newest_words({"messages": [HumanMessage("x" * 100_000 + "the end")]})
        assert words.endswith("xxthe end")
        assert len(words) <= MOST_CHARACTERS

    @pytest.mark.parametrize("values", [None, [], {}, {"messages": None}, {"messages": ["x", 1]}])
    def test_of_other_graphs_may_be_none(self, values: object) -> None:
        assert newest_words(values) == ""
