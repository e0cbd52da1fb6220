"""What is published of the parts that all share: it gets worse by itself, better by a check."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import uuid4

import pytest

from tenancy.principal import Principal
from tenancy.scheduler.components import Component, ComponentDatabase
from tests.integration.scheduler.conftest import Stage, pool
from tests.integration.scheduler.test_pools import WAITS_FOR_A_ROW
from tests.support.tenancy import TestDatabase, expire_leases, make_worker

OTHER = "other:latest"
EARLIER = "UPDATE components SET occurred_at = occurred_at - interval '1 hour'"


@pytest.fixture
async def components(database: TestDatabase) -> AsyncIterator[ComponentDatabase]:
    found = ComponentDatabase(database.settings("dispatch"))
    yield found
    await found.close()


async def part(components: ComponentDatabase, name: str) -> Component | None:
    return next((each for each in await components.look() if each.component == name), None)


async def standing(components: ComponentDatabase, name: str) -> tuple[str, str | None]:
    found = await part(components, name)
    assert found is not None
    return found.status, found.reason


READY = "SELECT dispatch.publish_available('workers', $1)"


class TestTheDatabase:
    async def test_says_itself_that_it_works_by_its_clock(
        self, stage: Stage, components: ComponentDatabase
    ) -> None:
        first, second = [await part(components, "database") for _ in range(2)]
        assert first is not None
        assert second is not None
        assert (first.status, first.reason, first.occurred_at) == ("available", None, None)
        now = await stage.value("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        assert first.version < second.version <= now


class TestWorkers:
    async def test_are_not_spoken_of_before_one_has_passed_its_checks(
        self, stage: Stage, components: ComponentDatabase
    ) -> None:
        assert await part(components, "workers") is None
        assert await components.publish_worker(stage.worker)
        assert await standing(components, "workers") == ("available", None)
        assert not await components.publish_worker(stage.worker)

    async def test_are_missing_where_there_never_was_one(
        self, stage: Stage, components: ComponentDatabase
    ) -> None:
        await stage.dispatch.retire_worker(stage.worker)
        await stage.superuser.execute("DELETE FROM workers")
        assert await standing(components, "workers") == ("unavailable", "no_workers")

    async def test_are_lost_since_the_last_lease_ended_and_back_with_the_next_that_is_ready(
        self, stage: Stage, components: ComponentDatabase
    ) -> None:
        await components.publish_worker(stage.worker)
        before = await part(components, "workers")
        await expire_leases(stage.superuser)
        lost = await part(components, "workers")
        assert before is not None
        assert lost is not None
        assert (lost.status, lost.reason) == ("unavailable", "worker_lost")
        assert lost.occurred_at == await stage.value("SELECT max(lease_until) FROM workers")
        assert await part(components, "workers") == lost
        assert not await components.publish_worker(stage.worker)

        other = await make_worker(stage.dispatch)
        assert await part(components, "workers") == lost
        assert await components.publish_worker(other)
        found = await part(components, "workers")
        assert found == Component("workers", "available", None, None, lost.version + 1)
        assert lost.version == before.version + 1

    async def test_that_only_begin_are_nobody_to_do_the_work(
        self, stage: Stage, components: ComponentDatabase
    ) -> None:
        await components.publish_worker(stage.worker)
        await stage.dispatch.retire_worker(stage.worker)
        other = await make_worker(stage.dispatch)
        assert await standing(components, "workers") == ("unavailable", "no_workers")
        assert await components.publish_worker(other)
        assert await standing(components, "workers") == ("available", None)

    async def test_of_which_the_first_died_before_it_was_ready_are_lost(
        self, stage: Stage, components: ComponentDatabase
    ) -> None:
        assert await part(components, "workers") is None
        await expire_leases(stage.superuser)
        assert await standing(components, "workers") == ("unavailable", "worker_lost")

    async def test_are_available_whoever_of_the_first_look_and_the_first_worker_comes_first(
        self, stage: Stage, components: ComponentDatabase
    ) -> None:
        """A look finds nobody; before it says so the first worker is ready, and says so."""
        assert await part(components, "workers") is None
        await stage.superuser.execute("UPDATE workers SET lease_until = clock_timestamp()")
        async with stage.superuser.transaction():
            await stage.superuser.execute(READY, stage.worker)
            looking = asyncio.create_task(part(components, "workers"))
            async with asyncio.timeout(30):
                while not await stage.value(WAITS_FOR_A_ROW):  # noqa: ASYNC110 - the database knows
                    await asyncio.sleep(0.01)
        found = await looking
        assert found is not None
        assert found.status == "available"

    async def test_are_there_as_long_as_one_is(
        self, stage: Stage, components: ComponentDatabase
    ) -> None:
        other = await make_worker(stage.dispatch)
        for each in (stage.worker, other):
            await components.publish_worker(each)
        before = await part(components, "workers")
        await stage.dispatch.retire_worker(stage.worker)
        assert await part(components, "workers") == before
        await stage.dispatch.retire_worker(other)
        await stage.superuser.execute("DELETE FROM workers")
        assert await standing(components, "workers") == ("unavailable", "no_workers")

    async def test_that_begin_are_not_taken_back_by_whoever_looked_before(
        self, stage: Stage, components: ComponentDatabase
    ) -> None:
        await components.publish_worker(stage.worker)
        await expire_leases(stage.superuser)
        async with stage.superuser.transaction():
            await stage.superuser.execute("SELECT 1 FROM components FOR UPDATE")
            looking = asyncio.create_task(part(components, "workers"))
            async with asyncio.timeout(30):
                while not await stage.value(WAITS_FOR_A_ROW):  # noqa: ASYNC110 - the database knows
                    await asyncio.sleep(0.01)
            await stage.superuser.execute(
                "UPDATE workers SET lease_until = clock_timestamp() + interval '1 hour'"
            )
        found = await looking
        assert found is not None
        assert found.status == "available"

    async def test_are_looked_for_by_many_at_once_and_it_is_news_once(
        self, stage: Stage, components: ComponentDatabase
    ) -> None:
        await components.publish_worker(stage.worker)
        before = await part(components, "workers")
        await expire_leases(stage.superuser)
        found = await asyncio.gather(*(part(components, "workers") for _ in range(8)))
        assert before is not None
        assert {each and each.version for each in found} == {before.version + 1}


class TestAPool:
    async def test_is_not_spoken_of_before_it_was_looked_at(
        self, stage: Stage, components: ComponentDatabase
    ) -> None:
        await stage.pools.declare([pool("one")])
        assert await part(components, "model:one") is None
        assert await components.pool_checked("one", stage.worker, None)
        assert await standing(components, "model:one") == ("available", None)

    @pytest.mark.parametrize(
        ("failure", "reason"),
        [("unreachable", "ollama_unreachable"), ("model_missing", "model_missing")],
    )
    async def test_that_does_not_work_at_the_start_is_kept_and_told(
        self, stage: Stage, components: ComponentDatabase, failure: str, reason: str
    ) -> None:
        await stage.pools.declare([pool("one")])
        assert await components.pool_checked("one", stage.worker, failure)  # type: ignore[arg-type]
        assert await standing(components, "model:one") == ("unavailable", reason)
        assert [each.pool for each in await stage.pools.to_probe(0)] == ["one"]

    async def test_that_fails_is_told_once_and_since_when(
        self, stage: Stage, components: ComponentDatabase, alice: Principal
    ) -> None:
        await stage.pools.declare([pool("one", 2)])
        await components.pool_checked("one", stage.worker, None)
        await stage.limit(alice, '{"seats": null}')
        run = await stage.run_of(alice)
        calls = [await stage.take(run), await stage.take(run)]
        await stage.settle(run, calls[0], 0, 0, "unreachable")
        told = await part(components, "model:one")
        assert told is not None
        assert (told.status, told.reason) == ("unavailable", "ollama_unreachable")
        assert told.occurred_at == await stage.value("SELECT failing_since FROM pools")
        await stage.settle(run, calls[1], 0, 0, "unreachable")
        assert await part(components, "model:one") == told
        assert not await components.pool_checked("one", uuid4(), "model_missing")
        assert await part(components, "model:one") == told

        await stage.pools.reopen("one")
        back = await part(components, "model:one")
        assert back == Component("model:one", "available", None, None, told.version + 1)

    async def test_that_fails_while_another_has_its_model_is_a_part_less(
        self, stage: Stage, components: ComponentDatabase
    ) -> None:
        await stage.pools.declare([pool("one"), pool("two"), pool("far", 1, OTHER)])
        for name in ("one", "two", "far"):
            await components.pool_checked(name, stage.worker, None)
        await components.pool_checked("one", uuid4(), "unreachable")
        assert await standing(components, "model:one") == ("degraded", "ollama_unreachable")
        first = await part(components, "model:one")
        await stage.superuser.execute(EARLIER)
        await components.pool_checked("two", uuid4(), "unreachable")
        assert await standing(components, "model:one") == ("unavailable", "ollama_unreachable")
        assert await standing(components, "model:two") == ("unavailable", "ollama_unreachable")
        assert await standing(components, "model:far") == ("available", None)
        worse = await part(components, "model:one")
        assert first is not None
        assert worse is not None
        assert first.occurred_at is not None
        assert worse.occurred_at == first.occurred_at - timedelta(hours=1)

        await stage.pools.reopen("two")
        assert await standing(components, "model:two") == ("available", None)
        assert await standing(components, "model:one") == ("degraded", "ollama_unreachable")
        await stage.pools.reopen("one")
        assert await standing(components, "model:one") == ("available", None)

    async def test_that_fails_as_the_other_does_leaves_no_model(
        self, stage: Stage, components: ComponentDatabase
    ) -> None:
        """Each of two looks takes out one of the pools, and neither has seen the other's."""
        await stage.pools.declare([pool("one"), pool("two")])
        for name in ("one", "two"):
            await components.pool_checked(name, stage.worker, None)
        async with stage.superuser.transaction():
            await stage.superuser.execute(
                "SELECT dispatch.pool_checked('one', NULL, 'unreachable')"
            )
            looking = asyncio.create_task(components.pool_checked("two", None, "unreachable"))
            async with asyncio.timeout(30):
                while not await stage.value(WAITS_FOR_A_ROW):  # noqa: ASYNC110 - the database knows
                    await asyncio.sleep(0.01)
        assert await looking
        for name in ("one", "two"):
            found = await standing(components, f"model:{name}")
            assert found == ("unavailable", "ollama_unreachable")

    async def test_that_fails_while_a_worker_begins_is_not_told_to_be_well(
        self, stage: Stage, components: ComponentDatabase
    ) -> None:
        """The worker's look has found it well, before it was taken out."""
        await stage.pools.declare([pool("one")])
        await components.pool_checked("one", stage.worker, None)
        async with stage.superuser.transaction():
            await stage.superuser.execute(
                "SELECT dispatch.pool_checked('one', NULL, 'unreachable')"
            )
            beginning = asyncio.create_task(components.pool_checked("one", uuid4(), None))
            async with asyncio.timeout(30):
                while not await stage.value(WAITS_FOR_A_ROW):  # noqa: ASYNC110 - the database knows
                    await asyncio.sleep(0.01)
        assert not await beginning
        assert await standing(components, "model:one") == ("unavailable", "ollama_unreachable")

    async def test_that_is_no_more_is_not_spoken_of_and_begins_beyond_where_it_ended(
        self, stage: Stage, components: ComponentDatabase
    ) -> None:
        await stage.pools.declare([pool("one"), pool("two")])
        await components.pool_checked("two", stage.worker, None)
        before = await part(components, "model:two")
        await stage.pools.declare([pool("one")])
        assert await part(components, "model:two") is None
        await stage.pools.declare([pool("one"), pool("two")])
        await components.pool_checked("two", stage.worker, None)
        after = await part(components, "model:two")
        assert before is not None
        assert after is not None
        assert after.version > before.version
