"""A turn of the built-in agent: what is remembered reaches the model, and what it keeps stays."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from app.memory.search import MemorySearch
from tests.integration.memory.conftest import PATIENCE
from tests.support.embedding import EMBEDDING_MODEL, EmbeddingServer
from tests.support.model_server import Script, ScriptedModelServer, ToolCall
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service

FACT = "Nadia works as a veterinarian."
ASKED = "Who of them heals animals?"


@pytest.fixture(scope="module")
async def embeddings() -> AsyncIterator[EmbeddingServer]:
    async with EmbeddingServer() as server:
        yield server


@pytest.fixture(scope="module")
async def chat() -> AsyncIterator[ScriptedModelServer]:
    async with ScriptedModelServer(slots=8) as server:
        yield server


@pytest.fixture(scope="module")
async def remembering(
    postgres: PostgresServer, chat: ScriptedModelServer, embeddings: EmbeddingServer
) -> AsyncIterator[RunningService]:
    """A service with an embedding model on a server of its own. Use people of your own."""
    pools = (
        {"name": "chat", "url": chat.url, "capacity": 8},
        {"name": "embed", "url": embeddings.url, "model": EMBEDDING_MODEL},
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.memory.run.MemorySearch", partial(MemorySearch, seconds=PATIENCE))
        async with running_service(
            postgres, pool=pools, embedding_model=EMBEDDING_MODEL, builtin_tools=("memory",)
        ) as running:
            yield running


async def turn(service: RunningService, who: str, said: str) -> list[dict[str, Any]]:
    """Say something in a new conversation; what comes of it."""
    sdk = service.sdk(who)
    thread = await sdk.threads.create()
    given: dict[str, Any] = {"messages": [{"role": "user", "content": said}]}
    values: Any = await sdk.runs.wait(thread["thread_id"], "agent", input=given)
    messages: list[dict[str, Any]] = values["messages"]
    return messages


def system_prompt(chat: ScriptedModelServer) -> str:
    messages: Any = chat.requests[-1].body["messages"]
    return str(messages[0]["content"])


class TestATurn:
    async def test_begins_with_what_matters_of_what_is_remembered(
        self,
        remembering: RunningService,
        chat: ScriptedModelServer,
        embeddings: EmbeddingServer,
    ) -> None:
        alice, bob = remembering.client("alice-turns"), remembering.client("bob-turns")
        await alice.post("/memories", json={"content": FACT})
        await bob.post("/memories", json={"content": "Bob's cat is a healer of animals."})
        answer = await turn(remembering, "alice-turns", ASKED)
        assert answer[-1]["content"] == f"You said: {ASKED}"
        assert FACT in system_prompt(chat)
        assert "Bob" not in system_prompt(chat)
        assert [ASKED] in embeddings.texts

    async def test_goes_on_where_the_embedding_model_fails(
        self,
        remembering: RunningService,
        chat: ScriptedModelServer,
        embeddings: EmbeddingServer,
    ) -> None:
        http = remembering.client("unlucky")
        await http.post("/memories", json={"content": FACT})
        embeddings.mood = "failing"
        try:
            answer = await turn(remembering, "unlucky", "Is Nadia there?")
        finally:
            embeddings.mood = "well"
        assert answer[-1]["content"] == "You said: Is Nadia there?"
        assert FACT in system_prompt(chat)

    async def test_remembers_for_the_person_and_names_itself(
        self, remembering: RunningService, chat: ScriptedModelServer
    ) -> None:
        http = remembering.client("tells")
        chat.enqueue(
            Script(tool_calls=(ToolCall(name="remember", arguments={"content": FACT}),)),
            Script(text="Noted."),
        )
        answer = await turn(remembering, "tells", "Remember what Nadia does.")
        assert answer[-1]["content"] == "Noted."
        (memory,) = (await http.get("/memories")).json()
        assert memory["content"] == FACT
        run = await http.get(f"/threads/{memory['thread_id']}/runs/{memory['run_id']}")
        assert run.status_code == 200
