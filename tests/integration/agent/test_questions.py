"""A tool's server that asks the person something in the middle of a call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from app.agent.agent import build_agent
from app.agent.asking import ASKED_TOO_MUCH, MOST_ROUNDS
from app.agent.graphs import SYSTEM_PROMPT
from app.models.chat import build_chat_model
from app.tools.calls import AgentTool
from app.tools.questions import Asked, Question, questions_of_call
from tests.integration.agent.conversation import CALL_SECONDS, THREAD, Conversation, Run
from tests.support.model_server import Script, ScriptedModelServer, ToolCall
from tests.support.models import FreeSeats, model_calls

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


@dataclass
class Shop:
    """A server with a tool that asks, and one that doesn't."""

    asks: Sequence[str] = ("Which seat?",)
    """What it asks, one after the other; each only once the last was answered."""
    effects: list[str] = field(default_factory=list)
    begun: list[str] = field(default_factory=list)
    is_begun: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.go.set()

    async def book(self, name: str) -> str:
        """Book something."""
        self.begun.append(f"book {name}")
        self.is_begun.set()
        await self.go.wait()
        asked = questions_of_call.get()
        assert asked is not None
        said = []
        for message in self.asks:
            question = Question(message, TEXT)
            if question.key not in asked.replies:
                raise Asked([question])
            reply = asked.replies[question.key]
            said.append((reply.content or {}).get("text", reply.action))
        self.effects.append(name)
        return f"{name}: {', '.join(said)}"

    async def look_up(self, name: str) -> str:
        """Look something up."""
        self.begun.append(f"look_up {name}")
        return f"{name} was found"

    def tools(self) -> list[AgentTool]:
        return [
            AgentTool.from_function(self.book, read_only=False, timeout_seconds=CALL_SECONDS),
            AgentTool.from_function(self.look_up, read_only=True, timeout_seconds=CALL_SECONDS),
        ]


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
async def conversation(server: ScriptedModelServer, shop: Shop) -> AsyncIterator[Conversation]:
    model = build_chat_model("smollm2", context=4096, output=64)
    agent = build_agent(model, SYSTEM_PROMPT, 4032, shop.tools())
    async with model_calls(FreeSeats(server.url, context=4096)):
        yield Conversation(agent.copy(update={"checkpointer": InMemorySaver()}))


def calling(*calls: str) -> Script:
    """An answer that makes calls: ``tool name``."""
    parts = [call.split() for call in calls]
    return Script(
        tool_calls=tuple(ToolCall(name=tool, arguments={"name": name}) for tool, name in parts)
    )


async def open_interrupt(conversation: Conversation) -> tuple[str, dict[str, Any]]:
    """The one interrupt that is open: its id and its value."""
    (interrupt,) = (await conversation.graph.aget_state(THREAD)).interrupts
    return interrupt.id, interrupt.value


async def answer(conversation: Conversation, text: str, action: str = "accept") -> Run:
    """Answer every question of every call alike."""
    interrupt_id, value = await open_interrupt(conversation)
    reply = {"action": action, **({"content": {"text": text}} if action == "accept" else {})}
    replies = {
        call["tool_call_id"]: {question["key"]: reply for question in call["questions"]}
        for call in value["calls"]
    }
    return Run(conversation.graph, Command(resume={interrupt_id: replying(replies)}), 25)


def replying(replies: dict[str, Any]) -> dict[str, Any]:
    """What the worker hands on of a person's replies to each call."""
    decided = {"approval_id": str(uuid4()), "state": "decided", "decision": "answer"}
    return {"decisions": {id_: {**decided, "replies": each} for id_, each in replies.items()}}


async def results(conversation: Conversation) -> list[str]:
    return [each.text for each in await conversation.messages() if isinstance(each, ToolMessage)]


class TestACallThatAsks:
    async def test_is_put_to_the_person_and_made_again_with_the_reply(
        self, server: ScriptedModelServer, conversation: Conversation, shop: Shop
    ) -> None:
        server.enqueue(calling("book a"))
        await conversation.say("do it").task
        _, value = await open_interrupt(conversation)
        (call,) = value["calls"]
        (made,) = (await conversation.last()).tool_calls
        assert value["type"] == "elicitation"
        assert (call["tool"], call["tool_call_id"]) == ("book", made["id"])
        question = Question("Which seat?", TEXT)
        assert call["questions"] == [
            {"key": question.key, "message": "Which seat?", "schema": TEXT, "url": None}
        ]
        assert shop.effects == []
        await (await answer(conversation, "7a")).task
        assert await results(conversation) == ["a: 7a"]
        assert (await conversation.last()).text == "You said: do it"
        assert shop.begun == ["book a"] * 2

    @pytest.mark.parametrize("action", ["decline", "cancel"])
    async def test_hears_that_the_person_will_not_say(
        self, server: ScriptedModelServer, conversation: Conversation, action: str
    ) -> None:
        server.enqueue(calling("book a"))
        await conversation.say("do it").task
        await (await answer(conversation, "", action)).task
        assert await results(conversation) == [f"a: {action}"]

    async def test_keeps_what_its_siblings_did_and_makes_none_of_them_again(
        self, server: ScriptedModelServer, conversation: Conversation, shop: Shop
    ) -> None:
        server.enqueue(calling("look_up a", "book b", "look_up c", "book d"))
        await conversation.say("do it").task
        _, value = await open_interrupt(conversation)
        assert len(value["calls"]) == 2
        assert await results(conversation) == ["a was found", "c was found"]
        await (await answer(conversation, "7a")).task
        assert await results(conversation) == ["a was found", "c was found", "b: 7a", "d: 7a"]
        assert sorted(shop.begun) == sorted(["look_up a", "look_up c", *["book b", "book d"] * 2])
        assert shop.effects == ["b", "d"]
        assert len(server.requests) == 2

    async def test_may_ask_again_and_has_all_earlier_replies_then(
        self, server: ScriptedModelServer, conversation: Conversation, shop: Shop
    ) -> None:
        shop.asks = ("Which day?", "Which seat?")
        server.enqueue(calling("book a"))
        await conversation.say("do it").task
        first, _ = await open_interrupt(conversation)
        await (await answer(conversation, "monday")).task
        second, value = await open_interrupt(conversation)
        assert first != second
        assert [each["message"] for each in value["calls"][0]["questions"]] == ["Which seat?"]
        await (await answer(conversation, "7a")).task
        assert await results(conversation) == ["a: monday, 7a"]

    async def test_is_over_once_it_has_asked_too_often(
        self, server: ScriptedModelServer, conversation: Conversation, shop: Shop
    ) -> None:
        shop.asks = [f"{n}?" for n in range(MOST_ROUNDS + 1)]
        server.enqueue(calling("book a"))
        await conversation.say("do it").task
        for _ in range(MOST_ROUNDS):
            await (await answer(conversation, "once more")).task
        assert await results(conversation) == [ASKED_TOO_MUCH]
        assert (await conversation.last()).text == "You said: do it"
        assert shop.effects == []

    async def test_shows_nothing_of_what_is_handed_on(
        self, server: ScriptedModelServer, conversation: Conversation
    ) -> None:
        server.enqueue(calling("book a"))
        shown: set[str] = set()

        async def drive(given: Any) -> None:
            modes: Any = ["values", "updates", "tasks", "checkpoints"]
            parts: Any = conversation.graph.astream(given, THREAD, stream_mode=modes)
            async for mode, data in parts:
                if mode == "updates":
                    shown.update(*(each for each in data.values() if isinstance(each, dict)))
                elif mode == "tasks":
                    shown.update(data.get("result", ()))
                else:
                    shown.update(data["values"] if mode == "checkpoints" else data)

        await drive({"messages": [{"role": "user", "content": "do it"}]})
        interrupt_id, value = await open_interrupt(conversation)
        (call,) = value["calls"]
        replies = {call["tool_call_id"]: {call["questions"][0]["key"]: {"action": "decline"}}}
        await drive(Command(resume={interrupt_id: replying(replies)}))
        assert shown == {"messages", "__interrupt__"}
        state = await conversation.graph.aget_state(THREAD)
        assert set(state.values) == {"messages"}


class TestInsteadOfAnAnswer:
    async def test_a_new_message_closes_the_call_and_nothing_is_asked_any_more(
        self, server: ScriptedModelServer, conversation: Conversation, shop: Shop
    ) -> None:
        server.enqueue(calling("book a"))
        await conversation.say("do it").task
        await conversation.say("never mind").task
        assert (await conversation.last()).text == "You said: never mind"
        assert not (await conversation.graph.aget_state(THREAD)).next
        assert shop.begun == ["book a"]
        sent = server.requests[-1].body["messages"]
        assert isinstance(sent, list)
        assert [each["role"] for each in sent[1:]] == ["user", "assistant", "tool", "user"]

    async def test_closing_the_call_by_hand_gives_the_turn_to_the_model(
        self, server: ScriptedModelServer, conversation: Conversation, shop: Shop
    ) -> None:
        server.enqueue(calling("book a"))
        await conversation.say("do it").task
        (made,) = (await conversation.last()).tool_calls
        closing = ToolMessage("closed", tool_call_id=made["id"] or "", status="error")
        (as_node,) = await conversation.next()
        await conversation.graph.aupdate_state(THREAD, {"messages": [closing]}, as_node=as_node)
        await conversation.go_on().task
        assert await results(conversation) == ["closed"]
        assert (await conversation.last()).text == "You said: do it"
        assert shop.begun == ["book a"]

    async def test_stopping_while_the_call_is_made_leaves_the_question_to_whoever_goes_on(
        self, server: ScriptedModelServer, conversation: Conversation, shop: Shop
    ) -> None:
        server.enqueue(calling("book a"))
        shop.go.clear()
        run = conversation.say("do it")
        await shop.is_begun.wait()
        run.stop.cancel()
        shop.go.set()
        assert await run.is_drained()
        assert not (await conversation.graph.aget_state(THREAD)).interrupts
        await conversation.go_on().task
        await (await answer(conversation, "7a")).task
        assert await results(conversation) == ["a: 7a"]
