"""How much is found again of two hundred facts, when it is asked for in other words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import pytest

from app.memory.memories import FoundMemory, Memories
from tenancy.principal import Principal
from tests.integration.memory.conftest import Searching
from tests.support.embedding import FACTS, Fact

MOST = 5
ASKED = [fact for fact in FACTS if fact.question is not None]
GERMAN = [fact for fact in ASKED if set("äöüßı") & set(fact.text) or "Oma" in fact.text]

Finding = Callable[[str], Awaitable[Sequence[FoundMemory]]]


async def recalled(facts: Sequence[Fact], find: Finding) -> float:
    """The share of questions that have their fact among the first five answers."""
    hits = 0
    for fact in facts:
        found = await find(fact.question or "")
        hits += fact.text in [each.memory.content for each in found]
    return hits / len(facts)


@pytest.fixture
async def knowing(memories: Memories, alice: Principal) -> Memories:
    """All of it is remembered of one person."""
    for fact in FACTS:
        _, is_new = await memories.add(alice, fact.text)
        assert is_new
    return memories


class TestTwoHundredFacts:
    def test_are_that_many(self) -> None:
        assert len({fact.text for fact in FACTS}) == 200
        assert len(ASKED) >= 100
        assert len(GERMAN) >= 10

    async def test_are_found_by_words(self, knowing: Memories, alice: Principal) -> None:
        assert await recalled(ASKED, lambda asked: knowing.find(alice, asked, MOST)) >= 0.7

    async def test_are_found_by_sense_and_words(
        self, knowing: Memories, searching: Searching
    ) -> None:
        search = searching(seconds=60)
        for _ in range(4):
            await search.find("Whatever it is", 1)  # until all have their embeddings
        assert await recalled(ASKED, lambda asked: search.find(asked, MOST)) >= 0.9
        assert await recalled(GERMAN, lambda asked: search.find(asked, MOST)) >= 0.9
