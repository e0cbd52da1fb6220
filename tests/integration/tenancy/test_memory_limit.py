"""The store keeps as much of a person's as they may keep, however they write to it."""

from __future__ import annotations

import asyncio
import json
from random import Random
from typing import Any

import asyncpg
import pytest
from langgraph.store.base import PutOp

from tenancy.checkpoints.pool import CheckpointPool
from tenancy.checkpoints.store import TenantStore
from tenancy.errors import MemoryFull
from tenancy.principal import Principal

MOST = 10_000
NOTES = ("notes",)


def text(size: int, seed: int = 0) -> dict[str, Any]:
    """Something of a size that does not get smaller when it is stored."""
    return {"text": Random(seed).randbytes(size // 2).hex()}


@pytest.fixture
def store(checkpoints: CheckpointPool, alice: Principal) -> TenantStore:
    return TenantStore(checkpoints, alice.user_id, limits={"memory_bytes": MOST})


async def kept(superuser: asyncpg.Connection) -> int:
    """How many bytes there are, as a person would count them."""
    rows = await superuser.fetch("SELECT prefix, key, value::text AS value FROM store")
    return sum(len("".join(row.values())) for row in rows)


class TestAFullStore:
    async def test_takes_nothing_more_and_keeps_what_it_has(
        self, store: TenantStore, superuser: asyncpg.Connection
    ) -> None:
        for number in range(6):
            await store.aput(NOTES, f"key {number}", text(1500, number))
        with pytest.raises(MemoryFull) as refused:
            await store.aput(NOTES, "one too many", text(1500, 6))
        assert refused.value.limit == "memory_bytes"
        assert await store.aget(NOTES, "one too many") is None
        assert await superuser.fetchval("SELECT count(*) FROM store") == 6

    async def test_is_not_rewritten_with_more(self, store: TenantStore) -> None:
        await store.aput(NOTES, "key", text(100))
        with pytest.raises(MemoryFull):
            await store.aput(NOTES, "key", text(2 * MOST))
        assert (await store.aget(NOTES, "key")).value == text(100)  # type: ignore[union-attr]

    async def test_takes_nothing_of_several_things_that_are_too_much_together(
        self, store: TenantStore, superuser: asyncpg.Connection
    ) -> None:
        puts = [PutOp(NOTES, f"key {n}", text(1500, n)) for n in range(8)]
        with pytest.raises(MemoryFull):
            await store.abatch(puts)
        assert await superuser.fetchval("SELECT count(*) FROM store") == 0

    async def test_is_read_and_made_room_in(
        self, checkpoints: CheckpointPool, alice: Principal, store: TenantStore
    ) -> None:
        for number in range(6):
            await store.aput(NOTES, f"key {number}", text(1500, number))
        less = TenantStore(checkpoints, alice.user_id, limits={"memory_bytes": 100})
        assert await less.aget(NOTES, "key 0") is not None
        assert len(await less.asearch(NOTES)) == 6
        with pytest.raises(MemoryFull):
            await less.aput(NOTES, "key 0", {"text": "short"})
        for number in range(6):
            await less.adelete(NOTES, f"key {number}")
        await less.aput(NOTES, "key", {})

    async def test_is_not_passed_by_many_who_write_at_once(
        self, store: TenantStore, superuser: asyncpg.Connection
    ) -> None:
        results = await asyncio.gather(
            *(store.aput(NOTES, f"key {n}", text(1500, n)) for n in range(20)),
            return_exceptions=True,
        )
        refused = [each for each in results if each is not None]
        assert {type(each) for each in refused} == {MemoryFull}
        assert 0 < await kept(superuser) <= MOST * 1.1
        assert await superuser.fetchval("SELECT count(*) FROM store") == 20 - len(refused) >= 6

    async def test_is_nobody_elses(
        self, checkpoints: CheckpointPool, store: TenantStore, bob: Principal
    ) -> None:
        await store.aput(NOTES, "key", text(9000))
        his = TenantStore(checkpoints, bob.user_id, limits={"memory_bytes": MOST})
        await his.aput(NOTES, "key", text(9000))

    async def test_of_a_person_with_a_limit_of_their_own_holds_that(
        self, store: TenantStore, alice: Principal, superuser: asyncpg.Connection
    ) -> None:
        await superuser.execute(
            "INSERT INTO user_limits (user_id, limits) VALUES ($1, $2)",
            alice.user_id,
            json.dumps({"memory_bytes": None}),
        )
        await store.aput(NOTES, "key", text(5 * MOST))
