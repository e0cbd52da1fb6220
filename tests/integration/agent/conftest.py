"""The agent on a scripted model server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from app.agent.agent import build_agent
from app.agent.graphs import SYSTEM_PROMPT
from app.models.chat import build_chat_model
from tests.integration.agent.conversation import Conversation, Workshop
from tests.support.model_server import ScriptedModelServer
from tests.support.models import FreeSeats, model_calls


@pytest.fixture
async def server() -> AsyncIterator[ScriptedModelServer]:
    async with ScriptedModelServer() as running:
        yield running


@pytest.fixture
def workshop() -> Workshop:
    return Workshop()


@pytest.fixture
async def conversation(
    server: ScriptedModelServer, workshop: Workshop
) -> AsyncIterator[Conversation]:
    agent = build_agent(
        build_chat_model("smollm2", context=4096, output=64), SYSTEM_PROMPT, 4032, workshop.tools()
    )
    async with model_calls(FreeSeats(server.url, context=4096)):
        yield Conversation(agent.copy(update={"checkpointer": InMemorySaver()}))
