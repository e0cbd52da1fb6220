"""A worker says that it is there once it has passed its checks, and how the model servers are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import pytest
from structlog.testing import capture_logs

from app.worker.presence import Presence, check_pools
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.engine import DatabaseUnavailable
from tenancy.scheduler.components import Component, ComponentDatabase
from tenancy.scheduler.pools import PoolDatabase, PoolDeclaration
from tests.support.held_ports import held_port
from tests.support.model_server import ScriptedModelServer
from tests.support.tenancy import TestDatabase, make_worker

PATIENCE = 30


class Unheard(ComponentDatabase):
    """The parts, whose database does not hear the first times that a worker speaks."""

    times = 3
    error: Exception = DatabaseUnavailable()

    async def publish_worker(self, worker_id: UUID) -> bool:
        """Fail at first."""
        if self.times:
            self.times -= 1
            raise self.error
        return await super().publish_worker(worker_id)


@pytest.fixture
async def components(database: TestDatabase) -> AsyncIterator[Unheard]:
    found = Unheard(database.settings("dispatch"))
    yield found
    await found.close()


@pytest.fixture
async def worker(dispatch: DispatchDatabase) -> UUID:
    return await make_worker(dispatch)


async def part(components: ComponentDatabase, name: str) -> Component | None:
    return next((each for each in await components.look() if each.component == name), None)


class TestAWorkerThatIsReady:
    @pytest.mark.parametrize(
        ("error", "level"),
        [(DatabaseUnavailable(), "warning"), (LookupError("a fault of ours"), "error")],
        ids=["away", "broken"],
    )
    async def test_says_so_however_long_the_database_does_not_hear_it(
        self, components: Unheard, worker: UUID, error: Exception, level: str
    ) -> None:
        components.error = error
        presence = Presence(components, worker)
        with capture_logs() as logs:
            await presence.start()
            async with asyncio.timeout(PATIENCE):
                while await part(components, "workers") is None:  # noqa: ASYNC110 - nothing tells
                    await asyncio.sleep(0.01)
            await presence.stop()
        found = await part(components, "workers")
        assert found is not None
        assert (found.status, components.times) == ("available", 0)
        assert [each["log_level"] for each in logs] == [level] * 3

    async def test_and_ends_before_anybody_heard_it_says_it_no_more(
        self, components: Unheard, worker: UUID
    ) -> None:
        components.times = 1_000_000
        presence = Presence(components, worker)
        await presence.start()
        async with asyncio.timeout(PATIENCE):
            while components.times == 1_000_000:  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0)
        await presence.stop()
        components.times = 0
        assert await part(components, "workers") is None

    async def test_says_nothing_once_its_lease_is_over(self, components: Unheard) -> None:
        components.times = 0
        assert not await components.publish_worker(uuid4())
        found = await part(components, "workers")
        assert found is not None
        assert (found.status, found.reason) == ("unavailable", "no_workers")


class TestAWorkerThatBegins:
    async def test_says_how_it_finds_each_pool(
        self, components: Unheard, database: TestDatabase, worker: UUID
    ) -> None:
        pools = PoolDatabase(database.settings("dispatch"))
        with held_port() as nobody:
            async with ScriptedModelServer() as server:
                there = {"well": (server.url, "smollm2"), "without": (server.url, "other")}
                away = f"http://127.0.0.1:{nobody}"
                declared = [
                    PoolDeclaration(name, name, url, None, model, 1, 1000, 500)
                    for name, (url, model) in {**there, "away": (away, "third")}.items()
                ]
                await pools.declare(declared)
                await check_pools(components, declared, worker)
        await pools.close()
        parts = {each.component: each for each in await components.look()}
        assert {name: (part.status, part.reason) for name, part in parts.items()} == {
            "database": ("available", None),
            "model:well": ("available", None),
            "model:without": ("unavailable", "model_missing"),
            "model:away": ("unavailable", "ollama_unreachable"),
        }
