"""An answer that is stopped or fails is kept as far as it came, and can be gone on with."""

from __future__ import annotations

import pytest
from langgraph.errors import GraphRecursionError

from app.models.errors import ModelStreamCut
from tests.integration.agent.conversation import Conversation
from tests.support.model_server import Script, ScriptedModelServer, ToolCall

STALLING = Script(tokens=("Once", " upon", " a"), stall_at=2)
CUT = Script(tokens=("Once", " upon", " a"), cut_at=2)


def said(request: dict[str, object]) -> list[tuple[str, str]]:
    """The roles and words of a model call, without the system's."""
    messages = request["messages"]
    assert isinstance(messages, list)
    return [(each["role"], each["content"]) for each in messages[1:]]


class TestStoppingAnAnswer:
    async def test_closes_the_connection_and_keeps_what_was_said(
        self, server: ScriptedModelServer, conversation: Conversation
    ) -> None:
        server.enqueue(STALLING)
        run = conversation.say("a story")
        await server.wait_for_stall()
        run.stop.cancel()
        assert await run.is_drained()
        await server.wait_for_disconnect()
        kept = await conversation.last()
        assert kept.text == "Once upon"
        assert kept.response_metadata["stoa_incomplete"] == "stopped"
        assert {kept.id} == {message.id for message in run.streamed}

    async def test_before_the_first_word_leaves_no_message(
        self, server: ScriptedModelServer, conversation: Conversation
    ) -> None:
        server.enqueue(Script(stall_at=0))
        run = conversation.say("a story")
        await server.wait_for_stall()
        run.stop.cancel()
        assert await run.is_drained()
        await server.wait_for_disconnect()
        assert [message.type for message in await conversation.messages()] == ["human"]
        assert await conversation.next() == ("model",)

    async def test_leaves_no_half_made_tool_call(
        self, server: ScriptedModelServer, conversation: Conversation
    ) -> None:
        calls = (ToolCall(name="change", arguments={"name": "a"}),)
        server.enqueue(Script(tokens=("I", " will"), tool_calls=calls, stall_at=2))
        run = conversation.say("do it")
        await server.wait_for_stall()
        run.stop.cancel()
        assert await run.is_drained()
        kept = await conversation.last()
        assert (kept.text, kept.tool_calls) == ("I will", [])

    async def test_of_which_the_end_was_heard_comes_too_late(
        self, server: ScriptedModelServer, conversation: Conversation
    ) -> None:
        run = conversation.say("hi")
        await run.task
        run.stop.cancel()
        assert (await conversation.last()).response_metadata.get("stoa_incomplete") is None
        assert await conversation.next() == ()


class TestDraining:
    async def test_lets_the_answer_come_to_its_end(
        self, server: ScriptedModelServer, conversation: Conversation
    ) -> None:
        server.enqueue(STALLING)
        run = conversation.say("a story")
        request = await server.wait_for_stall()
        run.stop.drain()
        server.release(request)
        assert not await run.is_drained()
        assert (await conversation.last()).text == "Once upon a"

    async def test_stops_before_the_tools_and_goes_on_with_them(
        self, server: ScriptedModelServer, conversation: Conversation
    ) -> None:
        calls = (ToolCall(name="fail", arguments={"name": "a"}),)
        server.enqueue(Script(tokens=("I", " will"), tool_calls=calls, stall_at=1))
        run = conversation.say("do it")
        request = await server.wait_for_stall()
        run.stop.drain()
        server.release(request)
        assert await run.is_drained()
        assert await conversation.next() == ("tools",)
        assert not await conversation.go_on().is_drained()
        assert [each.type for each in await conversation.messages()] == [
            "human",
            "ai",
            "tool",
            "ai",
        ]


class TestFailingInMidAnswer:
    async def test_keeps_what_was_said_and_leaves_the_failure_with_the_run(
        self, server: ScriptedModelServer, conversation: Conversation
    ) -> None:
        server.enqueue(CUT)
        run = conversation.say("a story")
        assert await run.is_drained()
        assert isinstance(run.stop.failure, ModelStreamCut)
        kept = await conversation.last()
        assert kept.text == "Once upon"
        assert kept.response_metadata["stoa_incomplete"] == "model_stream_cut"
        assert await conversation.next() == ("model",)

    async def test_before_the_first_word_fails_the_step(
        self, server: ScriptedModelServer, conversation: Conversation
    ) -> None:
        server.answer_with(Script(status=404))
        run = conversation.say("a story")
        with pytest.raises(Exception, match="not installed"):
            await run.task
        assert await conversation.next() == ("model",)

    async def test_outside_of_a_worker_raises(
        self, server: ScriptedModelServer, conversation: Conversation
    ) -> None:
        server.enqueue(CUT)
        with pytest.raises(ModelStreamCut):
            await conversation.graph.ainvoke(
                {"messages": [("human", "a story")]}, {"configurable": {"thread_id": "other"}}
            )


class TestGoingOn:
    @pytest.mark.parametrize("script", [STALLING, CUT], ids=["stopped", "failed"])
    async def test_without_a_message_the_model_continues_its_own_words(
        self, server: ScriptedModelServer, conversation: Conversation, script: Script
    ) -> None:
        await cut_off(server, conversation, script)
        server.enqueue(Script(text="a time."))
        assert not await conversation.go_on().is_drained()
        assert said(server.requests[-1].body) == [("user", "a story"), ("assistant", "Once upon")]
        texts = [message.text for message in await conversation.messages()]
        assert texts == ["a story", "Once upon", "a time."]

    async def test_twice_asks_with_one_message_of_all_that_was_said(
        self, server: ScriptedModelServer, conversation: Conversation
    ) -> None:
        await cut_off(server, conversation, CUT)
        server.enqueue(Script(text=" a time there", cut_at=2))
        assert await conversation.go_on().is_drained()
        server.enqueue(Script(text=" was."))
        assert not await conversation.go_on().is_drained()
        assert said(server.requests[-1].body) == [
            ("user", "a story"),
            ("assistant", "Once upon a time"),
        ]

    @pytest.mark.parametrize("script", [STALLING, CUT], ids=["stopped", "failed"])
    async def test_with_a_new_message_asks_the_model_once(
        self, server: ScriptedModelServer, conversation: Conversation, script: Script
    ) -> None:
        await cut_off(server, conversation, script)
        assert not await conversation.say("another").is_drained()
        assert len(server.requests) == 2
        assert said(server.requests[-1].body) == [
            ("user", "a story"),
            ("assistant", "Once upon"),
            ("user", "another"),
        ]

    async def test_stopped_again_before_a_word_it_can_still_be_gone_on_with(
        self, server: ScriptedModelServer, conversation: Conversation
    ) -> None:
        await cut_off(server, conversation, STALLING)
        server.enqueue(Script(stall_at=0))
        run = conversation.go_on()
        await server.wait_for_stall(2)
        run.stop.cancel()
        assert await run.is_drained()
        assert [each.text for each in await conversation.messages()] == ["a story", "Once upon"]
        assert await conversation.next() == ("model",)

    async def test_after_too_many_steps_it_goes_on_where_it_was(
        self, server: ScriptedModelServer, conversation: Conversation
    ) -> None:
        calls = (ToolCall(name="fail", arguments={"name": "a"}),)
        server.enqueue(Script(tool_calls=calls))
        with pytest.raises(GraphRecursionError):
            await conversation.say("do it", steps=2).task
        assert await conversation.next() == ("model",)
        assert not await conversation.go_on().is_drained()
        assert len(server.requests) == 2


async def cut_off(server: ScriptedModelServer, conversation: Conversation, script: Script) -> None:
    server.enqueue(script)
    run = conversation.say("a story")
    if script.stall_at is not None:
        await server.wait_for_stall()
        run.stop.cancel()
    assert await run.is_drained()
