"""An Idempotency-Key: the same request twice is one run, whatever happens in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import UUID, uuid4

import asyncpg
import pytest

from app.runs.events import settle_run
from app.runs.runs import AcceptedRun, IdempotencyKey, MultitaskStrategy, RunRequest, create_run
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.errors import IdempotencyConflict, RunNotFound, ThreadBusy, ThreadNotFound
from tenancy.principal import Principal
from tenancy.run_states import RunState
from tests.support.tenancy import (
    ASSISTANT,
    TestDatabase,
    claim_runs,
    make_thread,
    make_worker,
    queue_run,
)

KEY = IdempotencyKey("POST /threads/t/runs", "a key", b"of this body")
TWENTY = 20


@pytest.fixture
async def doors(database: TestDatabase) -> AsyncIterator[TenantDatabase]:
    """As many connections as there are duplicates."""
    door = TenantDatabase(database.settings("service", pool_size=TWENTY))
    yield door
    await door.close()


async def post(
    tenants: TenantDatabase,
    person: Principal,
    thread_id: UUID,
    key: IdempotencyKey | None = KEY,
    strategy: MultitaskStrategy = "enqueue",
) -> AcceptedRun:
    return await create_run(
        tenants,
        person,
        thread_id=thread_id,
        assistant_id=ASSISTANT,
        graph_id="agent",
        request=RunRequest(),
        idempotency=key,
        multitask_strategy=strategy,
    )


async def count(superuser: asyncpg.Connection, table: str) -> int:
    return int(await superuser.fetchval(f"SELECT count(*) FROM {table}"))


async def let_a_day_go_by(superuser: asyncpg.Connection) -> None:
    await superuser.execute(
        "UPDATE idempotency_keys SET created_at = created_at - interval '24 hours 1 second'"
    )


class TestTheSameRequestAgain:
    @pytest.mark.parametrize("strategy", ["enqueue", "reject", "interrupt", "rollback"])
    async def test_makes_one_run_of_twenty_at_once(
        self,
        strategy: MultitaskStrategy,
        doors: TenantDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        thread = await make_thread(doors, alice)
        posted = await asyncio.gather(
            *(post(doors, alice, thread, strategy=strategy) for _ in range(TWENTY))
        )
        assert len({accepted.run.run_id for accepted in posted}) == 1
        assert sum(accepted.is_new for accepted in posted) == 1
        assert await count(superuser, "runs") == 1
        assert await superuser.fetchval("SELECT state::text FROM runs") == "pending"

    async def test_gives_the_run_back_as_it_stands_now(
        self, tenants: TenantDatabase, dispatch: DispatchDatabase, alice: Principal
    ) -> None:
        thread = await make_thread(tenants, alice)
        first = await post(tenants, alice, thread)
        (claim,) = await claim_runs(dispatch, await make_worker(dispatch), 1, 10)
        await settle_run(tenants, claim, RunState.SUCCESS, 1, [])
        again = await post(tenants, alice, thread)
        assert (again.is_new, again.run.run_id) == (False, first.run.run_id)
        assert again.run.state == RunState.SUCCESS

    async def test_cancels_nothing_a_second_time(
        self, tenants: TenantDatabase, alice: Principal
    ) -> None:
        thread = await make_thread(tenants, alice)
        before = await queue_run(tenants, alice, thread)
        first = await post(tenants, alice, thread, strategy="interrupt")
        assert first.ended == (before.run_id,)
        again = await post(tenants, alice, thread, strategy="interrupt")
        assert (again.stopping, again.ended) == ((), ())
        assert again.run.state == RunState.PENDING

    async def test_is_not_found_once_its_run_was_deleted(
        self, tenants: TenantDatabase, superuser: asyncpg.Connection, alice: Principal
    ) -> None:
        thread = await make_thread(tenants, alice)
        await post(tenants, alice, thread)
        await superuser.execute("DELETE FROM runs")
        with pytest.raises(RunNotFound):
            await post(tenants, alice, thread)


class TestAKey:
    async def test_with_another_body_is_refused(
        self, tenants: TenantDatabase, superuser: asyncpg.Connection, alice: Principal
    ) -> None:
        thread = await make_thread(tenants, alice)
        await post(tenants, alice, thread)
        with pytest.raises(IdempotencyConflict):
            await post(tenants, alice, thread, replace(KEY, fingerprint=b"of another"))
        assert await count(superuser, "runs") == 1

    async def test_of_two_bodies_at_once_lets_one_in(
        self, doors: TenantDatabase, superuser: asyncpg.Connection, alice: Principal
    ) -> None:
        thread = await make_thread(doors, alice)
        answers = await asyncio.gather(
            *(
                post(doors, alice, thread, replace(KEY, fingerprint=bytes([n])))
                for n in range(TWENTY)
            ),
            return_exceptions=True,
        )
        assert [type(answer) for answer in answers].count(IdempotencyConflict) == TWENTY - 1
        assert await count(superuser, "runs") == 1

    async def test_is_ones_own_and_the_routes(
        self,
        tenants: TenantDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        bob: Principal,
    ) -> None:
        thread = uuid4()
        for person in (alice, bob):
            await make_thread(tenants, person, thread)
            for key in (KEY, replace(KEY, route="POST /threads/u/runs"), replace(KEY, key="b")):
                assert (await post(tenants, person, thread, key)).is_new
        assert await count(superuser, "runs") == 6

    async def test_counts_for_a_day(
        self, tenants: TenantDatabase, superuser: asyncpg.Connection, alice: Principal
    ) -> None:
        thread = await make_thread(tenants, alice)
        first = await post(tenants, alice, thread)
        await superuser.execute(
            "UPDATE idempotency_keys SET created_at = created_at - interval '23 hours'"
        )
        assert not (await post(tenants, alice, thread)).is_new
        await let_a_day_go_by(superuser)
        other = replace(KEY, fingerprint=b"of another")
        second = await post(tenants, alice, thread, other)
        assert second.is_new
        assert second.run.run_id != first.run.run_id
        assert (await post(tenants, alice, thread, other)).run.run_id == second.run.run_id
        assert await count(superuser, "idempotency_keys") == 1

    async def test_after_a_day_makes_one_run_of_twenty_at_once_too(
        self, doors: TenantDatabase, superuser: asyncpg.Connection, alice: Principal
    ) -> None:
        thread = await make_thread(doors, alice)
        await post(doors, alice, thread)
        await let_a_day_go_by(superuser)
        posted = await asyncio.gather(*(post(doors, alice, thread) for _ in range(TWENTY)))
        assert sum(accepted.is_new for accepted in posted) == 1
        assert await count(superuser, "runs") == 2


class TestARequestThatIsRefused:
    async def test_for_a_thread_that_is_not_there_leaves_no_key_behind(
        self, tenants: TenantDatabase, superuser: asyncpg.Connection, alice: Principal
    ) -> None:
        thread = uuid4()
        with pytest.raises(ThreadNotFound):
            await post(tenants, alice, thread)
        assert await count(superuser, "idempotency_keys") == 0
        await make_thread(tenants, alice, thread)
        assert (await post(tenants, alice, thread)).is_new

    async def test_for_a_busy_thread_leaves_no_key_behind(
        self, tenants: TenantDatabase, superuser: asyncpg.Connection, alice: Principal
    ) -> None:
        thread = await make_thread(tenants, alice)
        await queue_run(tenants, alice, thread)
        with pytest.raises(ThreadBusy):
            await post(tenants, alice, thread, strategy="reject")
        assert await count(superuser, "idempotency_keys") == 0
