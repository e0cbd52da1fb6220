"""Finding by words: in several languages, by what is rare for this person, and by nothing else."""

from __future__ import annotations

import asyncpg
import pytest

from app.memory.memories import Memories
from tenancy.checkpoints.pool import CheckpointPool
from tenancy.checkpoints.store import TenantStore
from tenancy.principal import Principal


async def found(memories: Memories, person: Principal, asked: str) -> list[str]:
    return [each.memory.content for each in await memories.find(person, asked, 10)]


class TestAWord:
    @pytest.mark.parametrize(
        ("fact", "asked"),
        [
            ("She teaches mathematics", "teaching"),
            ("Er fährt gerne Züge", "zug"),
            ("Die Häuser sind rot", "Haus"),
            ("Treffen im CAFÉ Größenwahn", "cafe grossenwahn"),
            ("Der Zahnarzttermin ist morgen", "Zahnarzt"),
            ("Zoë lives in Malmö", "zoe malmo"),
            ("Встреча в Москве", "москве"),
            ("Write to nadia@clinic.test", "nadia@clinic.test"),
            ("The number ends in 4471", "4471"),
        ],
        ids=lambda text: text.split()[-1],
    )
    async def test_is_found_in_another_form(
        self, memories: Memories, alice: Principal, fact: str, asked: str
    ) -> None:
        await memories.add(alice, fact)
        await memories.add(alice, "Something else entirely, bought in a shop")
        assert await found(memories, alice, asked) == [fact]

    @pytest.mark.parametrize(
        "asked", ["the and of", "der und die", "...", "'", "\\", "a & !b | (c", ":*"]
    )
    async def test_that_says_nothing_finds_nothing(
        self, memories: Memories, alice: Principal, asked: str
    ) -> None:
        await memories.add(alice, "The cat of the house and der Hund und die Maus")
        assert await found(memories, alice, asked) == []

    @pytest.mark.parametrize("asked", ["it's 'quoted", "back\\slash", "a:* | b", "<-> !", "%_%"])
    async def test_may_hold_whatever_means_something_to_the_database(
        self, memories: Memories, alice: Principal, asked: str
    ) -> None:
        await memories.add(alice, "Nothing of that")
        assert await found(memories, alice, asked) == []

    async def test_that_is_rare_for_this_person_counts_more(
        self, memories: Memories, alice: Principal
    ) -> None:
        for number in range(10):
            await memories.add(alice, f"The garden needs water on day {number}")
        await memories.add(alice, "The harbour is closed")
        best, *_ = await found(memories, alice, "garden harbour")
        assert best == "The harbour is closed"

    async def test_is_as_rare_as_it_was_whatever_others_keep(
        self, memories: Memories, alice: Principal, bob: Principal
    ) -> None:
        await memories.add(alice, "The harbour is closed")
        await memories.add(alice, "The garden is open")
        before = await memories.find(alice, "harbour", 5)
        for number in range(20):
            await memories.add(bob, f"The harbour has {number} ships")
        assert await memories.find(alice, "harbour", 5) == before

    async def test_with_a_capital_letter_is_what_is_asked_for(
        self, memories: Memories, alice: Principal
    ) -> None:
        await memories.add(alice, "Marek repairs vans")
        await memories.add(alice, "Vans repair")
        assert (await found(memories, alice, "who repairs for Marek"))[0] == "Marek repairs vans"


class TestWhateverIsKept:
    async def test_is_found_by_all_its_texts(
        self, checkpoints: CheckpointPool, alice: Principal
    ) -> None:
        store = TenantStore(checkpoints, alice.user_id)
        value = {"title": "Lisbon", "parts": [{"note": "trams"}, 7, None], "deep": {"er": "tiles"}}
        await store.aput(("notes", "travel"), "key", value)
        await store.aput(("notes",), "other", {"title": "Porto"})
        for asked in ("lisbon", "tram", "tile"):
            (item,) = await store.asearch(("notes",), query=asked)
            assert item.value == value
            assert item.score is not None
        assert await store.asearch(("notes",), query="title") == []  # a name of a field
        assert await store.asearch(("not",), query="lisbon") == []

    async def test_is_found_by_what_it_says_now(
        self, checkpoints: CheckpointPool, alice: Principal
    ) -> None:
        store = TenantStore(checkpoints, alice.user_id)
        await store.aput(("notes",), "key", {"text": "Lisbon"})
        await store.aput(("notes",), "key", {"text": "Porto"})
        assert await store.asearch((), query="lisbon") == []
        assert len(await store.asearch((), query="porto")) == 1

    async def test_is_found_though_an_earlier_version_has_kept_it(
        self, checkpoints: CheckpointPool, alice: Principal, superuser: asyncpg.Connection
    ) -> None:
        store = TenantStore(checkpoints, alice.user_id)
        await store.aput(("notes",), "key", {"text": "Lisbon"})
        await superuser.execute("UPDATE store SET words = NULL")
        assert len(await store.asearch((), query="lisbon")) == 1

    async def test_may_be_larger_than_what_can_be_searched(
        self, checkpoints: CheckpointPool, alice: Principal
    ) -> None:
        store = TenantStore(checkpoints, alice.user_id)
        text = " ".join(f"word{number}" for number in range(300_000))
        await store.aput(("notes",), "key", {"text": text})
        assert len(await store.asearch((), query="word17")) == 1

    async def test_is_searched_page_by_page_and_filtered(
        self, checkpoints: CheckpointPool, alice: Principal
    ) -> None:
        store = TenantStore(checkpoints, alice.user_id)
        for number in range(9):
            await store.aput(("notes",), f"{number}", {"text": "tram " * 3, "number": number})
        few = await store.asearch((), query="tram", filter={"number": {"$gte": 4}}, limit=3)
        more = await store.asearch(
            (), query="tram", filter={"number": {"$gte": 4}}, limit=3, offset=3
        )
        assert sorted(item.value["number"] for item in (*few, *more)) == [4, 5, 6, 7, 8]


class TestAFilter:
    @pytest.mark.parametrize(
        ("wanted", "keys"),
        [
            ({"n": {"$gt": 9}}, ["ten"]),
            ({"n": {"$lte": 9}}, ["nine", "two"]),
            ({"n": 9}, ["nine"]),
            ({"n": {"$ne": 9}}, ["none", "ten", "text", "two"]),
            ({"n": {"$eq": {"a": 1}}}, []),
            ({"n": {"$gt": 1, "$lt": 10}}, ["nine", "two"]),
            ({"n": {"$gte": "1"}}, ["text"]),
            ({"n": None}, []),
        ],
        ids=str,
    )
    async def test_compares_what_is_alike(
        self,
        checkpoints: CheckpointPool,
        alice: Principal,
        wanted: dict[str, object],
        keys: list[str],
    ) -> None:
        store = TenantStore(checkpoints, alice.user_id)
        kept: dict[str, object] = {"two": 2, "nine": 9, "ten": 10, "text": "10"}
        for key, number in kept.items():
            await store.aput(("notes",), key, {"n": number})
        await store.aput(("notes",), "none", {})
        items = await store.asearch(("notes",), filter=wanted)
        assert sorted(item.key for item in items) == keys
