"""What stopping means for tool calls: reading ends at once, changing comes to its end."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.messages import ToolMessage

from tests.integration.agent.conversation import Conversation, Workshop
from tests.support.model_server import Script, ScriptedModelServer, ToolCall


def calling(*calls: str) -> Script:
    """An answer that makes calls: ``tool name``."""
    parts = [call.split() for call in calls]
    return Script(
        tool_calls=tuple(ToolCall(name=tool, arguments={"name": name}) for tool, name in parts)
    )


async def results(conversation: Conversation) -> list[tuple[str, str]]:
    """Status and text of each result, in order."""
    messages = await conversation.messages()
    return [(each.status, each.text) for each in messages if isinstance(each, ToolMessage)]


class TestATurnWithTools:
    async def test_makes_the_calls_and_has_the_model_answer_from_the_results(
        self, server: ScriptedModelServer, conversation: Conversation, workshop: Workshop
    ) -> None:
        server.enqueue(calling("look_up a", "change b"))
        for name in "ab":
            workshop.call(name).go.set()
        assert not await conversation.say("do it").is_drained()
        assert await results(conversation) == [
            ("success", "a was found"),
            ("success", "b was changed"),
        ]
        assert (await conversation.last()).text == "You said: do it"

    async def test_tells_the_model_which_tools_there_are(
        self, server: ScriptedModelServer, conversation: Conversation
    ) -> None:
        await conversation.say("hi").task
        offered = server.requests[0].body["tools"]
        assert isinstance(offered, list)
        assert [tool["function"]["name"] for tool in offered] == ["look_up", "change", "fail"]

    async def test_makes_all_of_them_at_once_and_a_failed_one_harms_no_other(
        self, server: ScriptedModelServer, conversation: Conversation, workshop: Workshop
    ) -> None:
        server.enqueue(calling("fail a", "change b", "change c", "unheard_of d"))
        run = conversation.say("do it")
        for name in "bc":
            await workshop.call(name).begun.wait()
        for name in "cb":
            workshop.call(name).go.set()
        assert not await run.is_drained()
        assert await results(conversation) == [
            ("error", "The tool failed."),
            ("success", "b was changed"),
            ("success", "c was changed"),
            ("error", "There is no tool of this name."),
        ]


class TestStopping:
    async def test_cuts_a_call_off_that_only_reads(
        self, server: ScriptedModelServer, conversation: Conversation, workshop: Workshop
    ) -> None:
        server.enqueue(calling("look_up a"))
        run = conversation.say("do it")
        await workshop.call("a").begun.wait()
        assert not run.stop.finishing
        run.stop.cancel()
        assert await run.is_drained()
        assert workshop.call("a").cut_off.is_set()
        assert await results(conversation) == [
            ("error", "This call was stopped before it had a result.")
        ]
        assert await conversation.next() == ("model",)

    async def test_lets_a_call_finish_that_changes_something_and_records_its_result(
        self, server: ScriptedModelServer, conversation: Conversation, workshop: Workshop
    ) -> None:
        server.enqueue(calling("change a"))
        run = conversation.say("do it")
        await workshop.call("a").begun.wait()
        run.stop.cancel()
        assert list(run.stop.finishing) == ["change"]
        workshop.call("a").go.set()
        assert await run.is_drained()
        assert not run.stop.finishing
        assert await results(conversation) == [("success", "a was changed")]
        assert len(server.requests) == 1

    async def test_of_several_calls_ends_each_as_it_may_be_ended(
        self, server: ScriptedModelServer, conversation: Conversation, workshop: Workshop
    ) -> None:
        server.enqueue(calling("change a", "look_up b", "change c"))
        run = conversation.say("do it")
        for name in "abc":
            await workshop.call(name).begun.wait()
        workshop.call("a").go.set()
        run.stop.cancel()
        workshop.call("c").go.set()
        assert await run.is_drained()
        assert await results(conversation) == [
            ("success", "a was changed"),
            ("error", "This call was stopped before it had a result."),
            ("success", "c was changed"),
        ]

    async def test_then_going_on_repeats_no_effect(
        self, server: ScriptedModelServer, conversation: Conversation, workshop: Workshop
    ) -> None:
        server.enqueue(calling("change a", "look_up b"))
        run = conversation.say("do it")
        for name in "ab":
            await workshop.call(name).begun.wait()
        run.stop.cancel()
        workshop.call("a").go.set()
        assert await run.is_drained()
        assert not await conversation.go_on().is_drained()
        assert workshop.effects == ["a"]
        assert len(server.requests) == 2

    async def test_draining_lets_every_call_come_to_its_end(
        self, server: ScriptedModelServer, conversation: Conversation, workshop: Workshop
    ) -> None:
        server.enqueue(calling("look_up a", "change b"))
        run = conversation.say("do it")
        for name in "ab":
            await workshop.call(name).begun.wait()
        run.stop.drain()
        for name in "ab":
            workshop.call(name).go.set()
        assert await run.is_drained()
        assert await results(conversation) == [
            ("success", "a was found"),
            ("success", "b was changed"),
        ]
        assert await conversation.next() == ("model",)


class TestCancellingTheTask:
    async def test_waits_for_a_call_that_changes_something(
        self, server: ScriptedModelServer, conversation: Conversation, workshop: Workshop
    ) -> None:
        server.enqueue(calling("change a", "look_up b"))
        run = conversation.say("do it")
        for name in "ab":
            await workshop.call(name).begun.wait()
        run.task.cancel()
        await workshop.call("b").cut_off.wait()
        assert not run.task.done()
        workshop.call("a").go.set()
        with pytest.raises(asyncio.CancelledError):
            await run.task
        assert workshop.effects == ["a"]

    async def test_after_a_crash_only_the_unfinished_calls_are_made_again(
        self, server: ScriptedModelServer, conversation: Conversation, workshop: Workshop
    ) -> None:
        server.enqueue(calling("change a", "look_up b", "look_up c"))
        run = conversation.say("do it")
        for name in "abc":
            await workshop.call(name).begun.wait()
        workshop.call("a").go.set()
        await run.arrival("a was changed")
        run.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run.task
        for name in "bc":
            workshop.call(name).go.set()
        assert not await conversation.go_on().is_drained()
        assert workshop.effects == ["a"]
        assert [text for _, text in await results(conversation)] == [
            "a was changed",
            "b was found",
            "c was found",
        ]


class TestCallsWithoutAResult:
    async def test_are_closed_for_the_model_when_a_new_message_comes_instead(
        self, server: ScriptedModelServer, conversation: Conversation, workshop: Workshop
    ) -> None:
        server.enqueue(calling("look_up a"))
        run = conversation.say("do it")
        await workshop.call("a").begun.wait()
        run.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run.task
        assert not await conversation.say("never mind").is_drained()
        sent = server.requests[-1].body["messages"]
        assert isinstance(sent, list)
        assert [each["role"] for each in sent[1:]] == ["user", "assistant", "tool", "user"]
        assert "interrupted" in sent[3]["content"]
