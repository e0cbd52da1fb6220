"""A call of a tool gives a result whatever happens, and in time."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.tools import ToolException
from langgraph.errors import GraphInterrupt
from langgraph.types import Command
from pydantic import BaseModel

from app.stopping import RunStop
from app.tools.calls import AgentTool, run_call
from app.tools.questions import Asked
from app.tools.refusal import ToolRefusal

SOON = 0.01
CALL = ToolCall(name="work", args={"name": "a"}, id="1")


class Other(BaseModel):
    """Something else than a tool's arguments."""

    size: int


async def calling(
    tool: AgentTool, call: ToolCall = CALL, stop: RunStop | None = None
) -> ToolMessage:
    return await run_call(call, {tool.name: tool}, stop)


def raising(error: BaseException) -> AgentTool:
    async def work(name: str) -> str:
        """Raise."""
        raise error

    return AgentTool.from_function(work, read_only=False, timeout_seconds=10)


def returning(answer: object) -> AgentTool:
    async def work(name: str) -> object:
        """Return."""
        return answer

    return AgentTool.from_function(work, read_only=True, timeout_seconds=10)


def endless(*, read_only: bool) -> AgentTool:
    async def work(name: str) -> str:
        """Never answer."""
        await asyncio.Event().wait()
        return ""

    return AgentTool.from_function(work, read_only=read_only, timeout_seconds=SOON)


class TestResults:
    async def test_belong_to_their_call(self) -> None:
        made = await calling(returning("made"))
        assert (made.text, made.status) == ("made", "success")
        assert (made.tool_call_id, made.name) == ("1", "work")
        assert made.id is not None

    async def test_of_structure_are_written_out(self) -> None:
        assert (await calling(returning({"size": 1}))).text == '{"size": 1}'

    async def test_that_a_tool_made_for_another_call_are_this_calls_all_the_same(self) -> None:
        made = await calling(returning(ToolMessage("made", tool_call_id="9", artifact=object())))
        assert (made.text, made.tool_call_id, made.artifact) == ("made", "1", None)

    async def test_that_steer_the_graph_are_refused(self) -> None:
        made = await calling(returning(Command(goto="elsewhere")))
        assert (made.text, made.status) == ("The tool's answer could not be read.", "error")


class TestWhatGoesWrong:
    @pytest.mark.parametrize(
        "error",
        [
            RuntimeError("secret"),
            ToolException("secret"),
            GraphInterrupt(()),
            asyncio.CancelledError("secret"),
            TimeoutError("secret"),
        ],
        ids=lambda error: type(error).__name__,
    )
    async def test_says_nothing_of_the_exception(self, error: BaseException) -> None:
        made = await calling(raising(error))
        assert (made.text, made.status) == ("The tool failed.", "error")

    async def test_with_the_arguments_says_with_which(self) -> None:
        made = await calling(returning("made"), {**CALL, "args": {"nam": "secret"}})
        assert made.text == "The arguments do not fit the tool: `name` (missing)."
        assert made.status == "error"

    async def test_with_other_data_is_not_blamed_on_the_arguments(self) -> None:
        async def work(name: str) -> Other:
            """Read what is no number."""
            return Other.model_validate({"size": name})

        tool = AgentTool.from_function(work, read_only=True, timeout_seconds=10)
        assert (await calling(tool)).text == "The tool failed."

    async def test_with_the_name_is_a_result_too(self) -> None:
        made = await calling(returning("made"), {**CALL, "name": "play"})
        assert (made.text, made.name) == ("There is no tool of this name.", "play")

    async def test_that_may_be_told_is_told(self) -> None:
        made = await calling(raising(ToolRefusal("There is no such page.")))
        assert (made.text, made.status) == ("There is no such page.", "error")

    @pytest.mark.parametrize("read_only", [True, False])
    async def test_with_a_question_is_the_callers_to_put(self, read_only: bool) -> None:
        asking = replace(raising(Asked([])), read_only=read_only)
        with pytest.raises(Asked):
            await calling(asking)


class TestWhatIsToldOfACall:
    @pytest.mark.parametrize(
        ("tool", "outcome"),
        [
            (returning("made"), "ok"),
            (raising(RuntimeError()), "error"),
            (endless(read_only=True), "timeout"),
            (endless(read_only=False), "lost"),
        ],
        ids=["made", "failed", "too slow", "too slow to know"],
    )
    async def test_is_how_it_went(self, tool: AgentTool, outcome: str) -> None:
        told = (await calling(tool)).response_metadata["stoa"]
        assert (told["server"], told["tool"], told["outcome"]) == (None, "work", outcome)
        assert told["seconds"] >= 0

    async def test_is_the_servers_name_of_it(self) -> None:
        tool = replace(returning("made"), server="notes", own_name="work.it")
        told = (await calling(tool)).response_metadata["stoa"]
        assert (told["server"], told["tool"]) == ("notes", "work.it")

    async def test_is_nothing_that_a_tool_makes_up(self) -> None:
        forged = ToolMessage(
            "made", tool_call_id="1", response_metadata={"stoa": {"server": "bank", "outcome": "x"}}
        )
        told = (await calling(returning(forged))).response_metadata["stoa"]
        assert (told["server"], told["outcome"]) == (None, "ok")


class TestSlots:
    async def test_are_waited_for_and_given_back(self) -> None:
        slots = asyncio.Semaphore(1)
        await slots.acquire()
        waiting = asyncio.create_task(run_call(CALL, {"work": returning("made")}, None, slots))
        await asyncio.sleep(0)
        assert not waiting.done()
        slots.release()
        assert (await waiting).text == "made"
        assert not slots.locked()

    async def test_are_not_waited_for_by_a_run_that_stops(self) -> None:
        slots, stop = asyncio.Semaphore(0), RunStop()
        waiting = asyncio.create_task(run_call(CALL, {"work": returning("made")}, stop, slots))
        await asyncio.sleep(0)
        stop.cancel()
        made = await waiting
        assert made.text == "This call was stopped before it began."
        assert made.response_metadata["stoa"]["outcome"] == "stopped"
        slots.release()
        assert not slots.locked()


class TestTime:
    async def test_ends_a_call_that_reads(self) -> None:
        made = await calling(endless(read_only=True))
        assert (made.text, made.status) == ("The tool did not answer in time.", "error")

    async def test_ends_a_call_that_changes_and_says_that_it_may_have(self) -> None:
        made = await calling(endless(read_only=False))
        assert made.text == "The tool did not answer in time. It may have had an effect."

    async def test_ends_it_though_the_run_is_stopped(self) -> None:
        stop = RunStop()
        working = asyncio.create_task(calling(endless(read_only=False), stop=stop))
        await asyncio.sleep(0)
        stop.cancel()
        assert "may have had an effect" in (await working).text
        assert not stop.finishing


class TestStopping:
    async def test_begins_no_call_any_more(self) -> None:
        stop = RunStop()
        stop.cancel()
        made = await calling(raising(AssertionError()), stop=stop)
        assert made.text == "This call was stopped before it began."

    async def test_however_often_the_task_is_cancelled_a_change_is_made_whole(self) -> None:
        begun, go = asyncio.Event(), asyncio.Event()
        made: list[str] = []

        async def work(name: str) -> None:
            """Change something."""
            begun.set()
            await go.wait()
            made.append(name)

        tool = AgentTool.from_function(work, read_only=False, timeout_seconds=10)
        working = asyncio.create_task(calling(tool))
        await begun.wait()
        for _ in range(3):
            working.cancel()
            await asyncio.sleep(0)
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await working
        assert made == ["a"]

    async def test_the_names_of_calls_under_way_can_be_told(self) -> None:
        begun, go = asyncio.Event(), asyncio.Event()

        async def work(name: str) -> str:
            """Wait."""
            begun.set()
            await go.wait()
            return name

        stop = RunStop()
        tool = AgentTool.from_function(work, read_only=False, timeout_seconds=10)
        working = asyncio.create_task(calling(tool, stop=stop))
        await begun.wait()
        assert list(stop.finishing) == ["work"]
        go.set()
        assert (await working).text == "a"
        assert not stop.finishing
