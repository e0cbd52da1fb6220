"""Memories get their embeddings in runs; without them, or without the model, words are enough."""

from __future__ import annotations

import asyncpg
import pytest

from app.memory import search as search_module
from app.memory.embedding import Embedder
from app.memory.memories import Memories
from tenancy.errors import LeaseLost
from tenancy.principal import Principal
from tests.integration.memory.conftest import Searching
from tests.support.embedding import EMBEDDING_MODEL, EmbeddingServer
from tests.support.models import FreeSeats
from tests.support.tenancy import expire_leases

FACT = "Nadia works as a veterinarian."
ASKED = "Who heals animals?"  # not a word of the fact's


async def embedded(superuser: asyncpg.Connection) -> list[str]:
    """Which memories have an embedding, and of which model."""
    rows = await superuser.fetch(
        "SELECT value ->> 'content' AS content, embedding_model FROM store"
        " WHERE embedding IS NOT NULL ORDER BY 1"
    )
    return [f"{row['content']} {row['embedding_model']}" for row in rows]


class TestWhatWasWrittenWithoutAModel:
    async def test_is_embedded_before_it_is_searched_in_a_run(
        self,
        memories: Memories,
        alice: Principal,
        searching: Searching,
        superuser: asyncpg.Connection,
    ) -> None:
        await memories.add(alice, FACT)
        assert await memories.find(alice, ASKED, 5) == []
        (found,) = await searching().find(ASKED, 5)
        assert found.memory.content == FACT
        assert await embedded(superuser) == [f"{FACT} {EMBEDDING_MODEL}:latest"]

    async def test_is_embedded_once(
        self, memories: Memories, alice: Principal, searching: Searching, server: EmbeddingServer
    ) -> None:
        await memories.add(alice, FACT)
        for _ in range(3):
            await searching().find(ASKED, 5)
        assert server.texts == [[ASKED], [FACT], [ASKED], [ASKED]]

    async def test_is_embedded_a_few_at_a_time(
        self,
        memories: Memories,
        alice: Principal,
        searching: Searching,
        server: EmbeddingServer,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(search_module, "MOST_BATCHES", 1)
        for number in range(20):
            await memories.add(alice, f"Fact {number}.")
        await searching().find(ASKED, 5)
        assert [len(texts) for texts in server.texts] == [1, 8]
        await searching().find(ASKED, 5)
        assert [len(texts) for texts in server.texts] == [1, 8, 1, 8]

    async def test_takes_a_seat_for_each_call_and_gives_it_back(
        self, memories: Memories, alice: Principal, searching: Searching, seats: FreeSeats
    ) -> None:
        await memories.add(alice, FACT)
        await searching().find(ASKED, 5)
        assert len(await seats.all_back()) == seats.taken == 2

    async def test_nothing_is_asked_of_a_model_for_somebody_without_memories(
        self, searching: Searching, server: EmbeddingServer
    ) -> None:
        assert await searching().find(ASKED, 5) == []
        assert server.texts == []


class TestAnEmbedding:
    async def test_goes_with_the_words_it_was_made_of(
        self,
        memories: Memories,
        alice: Principal,
        searching: Searching,
        superuser: asyncpg.Connection,
    ) -> None:
        memory, _ = await memories.add(alice, FACT)
        await searching().find(ASKED, 5)
        edited = await memories.edit(alice, memory.memory_id, "Nadia is a tailor.")
        assert edited.updated_at > memory.updated_at
        assert await embedded(superuser) == []
        await searching().find(ASKED, 5)
        assert await embedded(superuser) == [f"Nadia is a tailor. {EMBEDDING_MODEL}:latest"]

    async def test_of_another_model_is_made_anew(
        self,
        memories: Memories,
        alice: Principal,
        searching: Searching,
        superuser: asyncpg.Connection,
    ) -> None:
        await memories.add(alice, FACT)
        await superuser.execute("UPDATE store SET embedding = '{1, 0}', embedding_model = 'older'")
        assert [each.memory.content for each in await searching().find(ASKED, 5)] == [FACT]
        assert await embedded(superuser) == [f"{FACT} {EMBEDDING_MODEL}:latest"]

    async def test_counts_as_memory_and_is_not_kept_without_room(
        self,
        memories: Memories,
        alice: Principal,
        searching: Searching,
        superuser: asyncpg.Connection,
        server: EmbeddingServer,
    ) -> None:
        await memories.add(alice, FACT)
        before = await superuser.fetchval("SELECT tenant.memory_bytes($1)", alice.user_id)
        narrow = searching(limits={"memory_bytes": before + 1000})
        assert [each.memory.content for each in await narrow.find("veterinarian", 5)] == [FACT]
        assert await embedded(superuser) == []
        assert server.texts == [["veterinarian"]]
        await searching().find(ASKED, 5)
        after = await superuser.fetchval("SELECT tenant.memory_bytes($1)", alice.user_id)
        assert after - before > 384 * 4

    async def test_is_not_kept_for_a_run_that_is_lost(
        self,
        memories: Memories,
        alice: Principal,
        searching: Searching,
        superuser: asyncpg.Connection,
    ) -> None:
        await memories.add(alice, FACT)
        await expire_leases(superuser)
        with pytest.raises(LeaseLost):
            await searching().find(ASKED, 5)
        assert await embedded(superuser) == []


class TestAModelThatDoesNotAnswer:
    async def test_leaves_words_to_go_by(
        self, memories: Memories, alice: Principal, searching: Searching, server: EmbeddingServer
    ) -> None:
        await memories.add(alice, FACT)
        server.mood = "failing"
        assert [each.memory.content for each in await searching().find("veterinarian", 5)] == [FACT]

    async def test_is_not_waited_for_beyond_its_time(
        self,
        memories: Memories,
        alice: Principal,
        searching: Searching,
        server: EmbeddingServer,
        seats: FreeSeats,
    ) -> None:
        await memories.add(alice, FACT)
        server.mood = "hanging"
        search = searching(seconds=0.05)
        assert [each.memory.content for each in await search.find("veterinarian", 5)] == [FACT]
        await seats.all_back()

    async def test_is_left_alone_for_a_while(
        self, memories: Memories, alice: Principal, searching: Searching, server: EmbeddingServer
    ) -> None:
        await memories.add(alice, FACT)
        server.mood = "failing"
        tired = searching(embedder=Embedder(EMBEDDING_MODEL, rest_seconds=3600))
        await tired.find("veterinarian", 5)
        asked = len(server.texts)
        server.mood = "well"
        assert len(await tired.find("veterinarian", 5)) == 1
        assert len(server.texts) == asked

    async def test_that_nobody_serves_leaves_words_to_go_by(
        self, memories: Memories, alice: Principal, searching: Searching
    ) -> None:
        await memories.add(alice, FACT)
        search = searching(embedder=Embedder("unknown"))
        assert [each.memory.content for each in await search.find("veterinarian", 5)] == [FACT]
