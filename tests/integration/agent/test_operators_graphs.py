"""A graph of the operator's own comes by the service's model, and may give an agent tools."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from app.agent import service_model
from app.agent.graphs import GraphCatalogue
from app.settings import Settings
from tests.integration.agent.conversation import Conversation
from tests.support.deployment import GRAPHS
from tests.support.graphs.working import FOLDER, LINES, LOOK_SECONDS
from tests.support.model_server import Script, ScriptedModelServer, ToolCall
from tests.support.models import FreeSeats, model_calls


@pytest.fixture
async def catalogue(server: ScriptedModelServer) -> AsyncIterator[GraphCatalogue]:
    settings = {"model": "smollm2", "ollama_url": server.url, "graphs": GRAPHS}
    async with model_calls(FreeSeats(server.url)):
        yield GraphCatalogue(Settings.model_validate(settings))


class TestAnAgentWithToolsOfItsOwn:
    async def test_calls_them_and_finishes_what_it_began_when_stopped(
        self,
        server: ScriptedModelServer,
        catalogue: GraphCatalogue,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setenv(FOLDER, str(tmp_path))
        saver = InMemorySaver()
        conversation = Conversation(catalogue.get("working").copy(update={"checkpointer": saver}))
        calls = tuple(
            ToolCall(name=tool, arguments={"name": name})
            for tool, name in (("look_up", "a"), ("append", "b"))
        )
        server.enqueue(Script(tool_calls=calls))
        run = conversation.say("do it")
        await appearance(tmp_path / "a.begun", tmp_path / "b.begun")
        run.stop.cancel()
        (tmp_path / "b.go").touch()
        assert await run.is_drained()
        assert (tmp_path / LINES).read_text(encoding="utf-8") == "b\n"
        texts = [message.text for message in await conversation.messages()]
        assert texts[2:] == ["This call was stopped before it had a result.", "b was appended"]


class TestTheServicesModel:
    async def test_is_for_the_building_of_graphs_only(self, catalogue: GraphCatalogue) -> None:
        with pytest.raises(RuntimeError, match="building of a graph"):
            service_model()


async def appearance(*files: Path) -> None:
    async with asyncio.timeout(60):
        while not all(file.exists() for file in files):  # noqa: ASYNC110 - a file has no event
            await asyncio.sleep(LOOK_SECONDS)
