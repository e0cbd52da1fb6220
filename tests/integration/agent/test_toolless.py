"""A model that calls no tools answers all the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver

from app.agent.agent import build_agent
from app.agent.graphs import SYSTEM_PROMPT
from app.agent.toolless import OFFER_AGAIN_SECONDS, ToolOffer
from app.models.chat import build_chat_model
from app.models.errors import ToolsUnsupported
from tests.integration.agent.conversation import Conversation, Workshop
from tests.support.model_server import ScriptedModelServer
from tests.support.models import FreeSeats, model_calls


class TestAModelThatCallsNoTools:
    async def test_answers_without_and_is_offered_none_from_then_on(self) -> None:
        server = ScriptedModelServer(capabilities=["completion"])
        async with server, model_calls(FreeSeats(server.url)):
            model = build_chat_model("smollm2", context=4096, output=64)
            agent = build_agent(model, SYSTEM_PROMPT, 4032, Workshop().tools())
            conversation = Conversation(agent.copy(update={"checkpointer": InMemorySaver()}))
            await conversation.say("hi").task
            assert (await conversation.last()).text == "You said: hi"
            await conversation.say("ho").task
            assert (await conversation.last()).text == "You said: ho"
            offered = [bool(request.body.get("tools")) for request in server.requests]
        assert offered == [True, False, False]

    async def test_has_the_person_told_whose_tools_it_does_not_call(self) -> None:
        server = ScriptedModelServer(capabilities=["completion"])
        tools = [
            replace(each, server=whose)
            for each, whose in zip(Workshop().tools(), ("notes", "notes", None), strict=True)
        ]
        async with server, model_calls(FreeSeats(server.url)):
            model = build_chat_model("smollm2", context=4096, output=64)
            agent = build_agent(model, SYSTEM_PROMPT, 4032, tools)
            said = {"messages": [HumanMessage("hi")]}
            told = [part async for part in agent.astream(said, stream_mode="custom")]
        servers = [{"server": "notes", "reason": "no_tools"}]
        assert told == [{"type": "tools_missing", "servers": servers}]

    async def test_is_offered_tools_again_after_a_while(self) -> None:
        now = 0.0
        offers: list[int] = []

        async def ask(tools: Sequence[BaseTool]) -> None:
            offers.append(len(tools))
            if tools and now < OFFER_AGAIN_SECONDS:
                raise ToolsUnsupported

        offer = ToolOffer("smollm2", lambda: now)
        tools = [each.tool for each in Workshop().tools()]
        await offer.made(tools, ask)
        await offer.made(tools, ask)
        now = OFFER_AGAIN_SECONDS
        await offer.made(tools, ask)
        assert offers == [3, 0, 0, 3]
