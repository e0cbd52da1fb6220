"""A scripted server, and the service's chat model connected to it within a run."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from langchain_ollama import ChatOllama

from app.models.chat import build_chat_model
from app.models.scope import RunScope
from tests.support.model_server import ScriptedModelServer
from tests.support.models import FreeSeats, model_calls


@pytest.fixture
async def server() -> AsyncIterator[ScriptedModelServer]:
    async with ScriptedModelServer() as running:
        yield running


@pytest.fixture
def seats(server: ScriptedModelServer) -> FreeSeats:
    return FreeSeats(server.url)


@pytest.fixture
async def scope(seats: FreeSeats) -> AsyncIterator[RunScope]:
    """The run in whose name the test makes its calls."""
    async with model_calls(seats) as entered:
        yield entered


@pytest.fixture
def chat(scope: RunScope) -> ChatOllama:
    return build_chat_model("smollm2", context=2048, output=64)
