"""The agent on a scripted model server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from app.agent.agent import build_agent
from app.agent.graphs import SYSTEM_PROMPT
from app.models.chat import build_chat_model, close_chat_model
from app.models.settings import ModelSettings
from tests.integration.agent.conversation import Conversation, Workshop
from tests.support.model_server import ScriptedModelServer


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
    settings = ModelSettings(
        url=server.url, model="smollm2", context=4096, output=64, retry_seconds=0.01
    )
    model = build_chat_model(settings)
    agent = build_agent(model, SYSTEM_PROMPT, 4032, workshop.tools())
    yield Conversation(agent.copy(update={"checkpointer": InMemorySaver()}))
    await close_chat_model(model)
