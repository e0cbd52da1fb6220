"""A scripted server, and the service's chat model connected to it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from langchain_ollama import ChatOllama

from app.models.chat import build_chat_model, close_chat_model
from app.models.settings import ModelSettings
from tests.support.model_server import ScriptedModelServer


@pytest.fixture
async def server() -> AsyncIterator[ScriptedModelServer]:
    async with ScriptedModelServer() as running:
        yield running


@pytest.fixture
def model_settings(server: ScriptedModelServer) -> ModelSettings:
    return ModelSettings(
        url=server.url, model="smollm2", context=2048, output=64, retry_seconds=0.01
    )


@pytest.fixture
async def chat(model_settings: ModelSettings) -> AsyncIterator[ChatOllama]:
    model = build_chat_model(model_settings)
    yield model
    await close_chat_model(model)
