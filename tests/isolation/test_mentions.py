"""What Alice has cannot be mentioned by Bob: it is not found, not there, and not read for him."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

import pytest
import sqlalchemy as sa

from app.agent.graphs import GraphCatalogue
from app.memory.memories import Memories
from app.mentions.checking import MentionCheck, MentionNotFound, PlacedRef
from app.mentions.own import MemorySource, ThreadSource
from app.mentions.refs import Ref
from app.mentions.sources import Asked
from app.runs.history import ThreadHistory
from app.settings import Settings
from app.sharing import default_limits
from app.worker.conversations import Conversations
from app.worker.mentioned import GONE, MentionReader
from tenancy.checkpoints.pool import CheckpointPool
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import Principal
from tenancy.tables import threads
from tests.support.tenancy import claimed_run, make_thread

SETTINGS = Settings.model_validate({"model": "smollm2"})


@pytest.fixture
def memories(tenants: TenantDatabase) -> Memories:
    return Memories(tenants, default_limits(SETTINGS))


@pytest.fixture
async def alices(tenants: TenantDatabase, memories: Memories, alice: Principal) -> list[Ref]:
    """A conversation that has a title, and a memory."""
    thread_id = await make_thread(tenants, alice)
    async with tenants.writing(alice) as tx:
        await tx.change(sa.update(threads).values(title="Alice's garden"))
    memory, _ = await memories.add(alice, "Alice has a garden.")
    return [Ref("thread", str(thread_id)), Ref("memory", str(memory.memory_id))]


class TestWhatAliceHas:
    async def test_is_found_by_her_alone(
        self,
        tenants: TenantDatabase,
        memories: Memories,
        alices: list[Ref],
        alice: Principal,
        bob: Principal,
    ) -> None:
        sources = (ThreadSource(tenants), MemorySource(memories))
        for who, found in ((alice, alices), (bob, [])):
            answers = [await source.find(Asked(who, "garden", 10)) for source in sources]
            assert [each.ref for answer in answers for each in answer] == found

    async def test_is_there_for_her_alone(
        self, tenants: TenantDatabase, alices: list[Ref], alice: Principal, bob: Principal
    ) -> None:
        check = MentionCheck(tenants, cast("Any", None), (), tuple)
        for ref in alices:
            await check.require(alice, [PlacedRef(ref, 0, 0)])
            with pytest.raises(MentionNotFound):
                await check.require(bob, [PlacedRef(ref, 0, 0)])

    async def test_is_read_for_her_runs_alone(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        checkpoints: CheckpointPool,
        alices: list[Ref],
        alice: Principal,
        bob: Principal,
    ) -> None:
        history = ThreadHistory(tenants, checkpoints, GraphCatalogue(SETTINGS))
        nowhere = cast("Any", None)
        reader = MentionReader(tenants, Conversations(history), nowhere, nowhere)
        refs = [str(ref) for ref in alices]
        said = {}
        for who in (alice, bob):
            run = await claimed_run(tenants, dispatch, who, await make_thread(tenants, who))
            said[who] = await reader.of_run(run, UUID(int=0), {}).read(refs)
        assert [(each.title, each.text) for each in said[alice]] == [
            ("Alice's garden", ""),
            (None, "Alice has a garden."),
        ]
        assert [(each.title, each.text, each.note) for each in said[bob]] == [
            (None, None, GONE)
        ] * 2
