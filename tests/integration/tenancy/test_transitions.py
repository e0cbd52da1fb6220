"""The database refuses every step of a run's life that the state machine doesn't have."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import asyncpg
import pytest

from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import Principal
from tenancy.run_states import TERMINAL, RunState, may_become
from tests.support.postgres import Role
from tests.support.tenancy import (
    ASSISTANT,
    TestDatabase,
    make_thread,
    make_worker,
    queue_run,
)

IMPOSSIBLE = "ST007"
INSUFFICIENT_PRIVILEGE = "42501"
ROLES: tuple[Role, ...] = ("owner", "service", "dispatch", "maintenance")
PAIRS = [(before, after) for before in RunState for after in RunState if before != after]
ENDED = {state.value for state in TERMINAL}


@pytest.fixture
async def run_id(tenants: TenantDatabase, alice: Principal) -> UUID:
    return (await queue_run(tenants, alice, await make_thread(tenants, alice))).run_id


@pytest.fixture
async def worker(dispatch: DispatchDatabase) -> UUID:
    return await make_worker(dispatch)


@asynccontextmanager
async def bound(
    database: TestDatabase, role: Role, person: Principal
) -> AsyncIterator[asyncpg.Connection]:
    """A connection of a role's, in a transaction that may write for the person."""
    connection = await database.connect(role)
    try:
        transaction = connection.transaction()
        await transaction.start()
        if role in ("owner", "service"):
            await connection.execute("SELECT tenant.begin_write($1)", person.user_id)
        yield connection
        await transaction.rollback()
    finally:
        await connection.close()


async def put_into(
    superuser: asyncpg.Connection, run_id: UUID, state: RunState, worker: UUID
) -> None:
    """Let a run be in a state, however it may have come there."""
    await superuser.execute("SET session_replication_role = replica")
    await superuser.execute(
        """
        UPDATE runs SET state = $2::text::run_state, fence = 5,
          worker_id = CASE WHEN $2::text = 'running' THEN $3::uuid END,
          claimed_at = clock_timestamp(),
          ended_at = CASE WHEN $2::text = ANY ($4) THEN clock_timestamp() END
        WHERE run_id = $1
        """,
        run_id,
        state.value,
        worker,
        list(ENDED),
    )
    await superuser.execute("RESET session_replication_role")


async def refusal(
    connection: asyncpg.Connection, run_id: UUID, after: RunState, worker: UUID, role: Role
) -> str:
    """How the database answers an attempt to put the run into a state; empty if it did."""
    parts = ["state = $2::text::run_state", "fence = fence + 1"]
    values: list[object] = [run_id, after.value]
    if role != "maintenance":
        values.append(worker if after == RunState.RUNNING else None)
        parts.append(f"worker_id = ${len(values)}::uuid")
    if role != "dispatch" and after in TERMINAL:
        parts.append("ended_at = clock_timestamp()")
    try:
        async with connection.transaction():
            changed = await connection.execute(
                f"UPDATE runs SET {', '.join(parts)} WHERE run_id = $1", *values
            )
            assert changed == "UPDATE 1"
    except asyncpg.PostgresError as error:
        return str(error.sqlstate)
    return ""


class TestAStep:
    @pytest.mark.parametrize("role", ROLES)
    async def test_that_the_machine_does_not_have_is_refused_whoever_tries_it(
        self,
        role: Role,
        database: TestDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        run_id: UUID,
        worker: UUID,
    ) -> None:
        for before, after in PAIRS:
            if may_become(before, after):
                continue
            await put_into(superuser, run_id, before, worker)
            async with bound(database, role, alice) as connection:
                refused = await refusal(connection, run_id, after, worker, role)
            expected = INSUFFICIENT_PRIVILEGE if role == "maintenance" else IMPOSSIBLE
            assert refused == expected, (before, after)

    async def test_that_it_has_is_made(
        self,
        database: TestDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        run_id: UUID,
        worker: UUID,
    ) -> None:
        for before, after in PAIRS:
            if not may_become(before, after):
                continue
            await put_into(superuser, run_id, before, worker)
            async with bound(database, "owner", alice) as connection:
                refused = await refusal(connection, run_id, after, worker, "owner")
            assert refused == "", (before, after)

    @pytest.mark.parametrize("after", sorted(TERMINAL | {RunState.WAITING} - {RunState.CANCELLED}))
    async def test_leads_to_nothing_but_cancelled_once_a_cancel_was_accepted(
        self,
        after: RunState,
        database: TestDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        run_id: UUID,
        worker: UUID,
    ) -> None:
        await put_into(superuser, run_id, RunState.RUNNING, worker)
        await superuser.execute(
            "UPDATE runs SET cancel_requested_at = now(), cancel_action = 'interrupt'"
        )
        async with bound(database, "owner", alice) as connection:
            refused = await refusal(connection, run_id, after, worker, "owner")
        assert refused == ("" if after == RunState.CANCELLED else IMPOSSIBLE)


class TestARunThatIsNew:
    @pytest.mark.parametrize("state", sorted(set(RunState) - {RunState.PENDING}))
    @pytest.mark.parametrize("role", ["owner", "service"])
    async def test_begins_in_no_other_state(
        self,
        role: Role,
        state: RunState,
        database: TestDatabase,
        tenants: TenantDatabase,
        alice: Principal,
        worker: UUID,
    ) -> None:
        thread = await make_thread(tenants, alice)
        async with bound(database, role, alice) as connection:
            assert await self.insert(connection, alice, thread, state, worker) == IMPOSSIBLE

    async def test_begins_without_a_fence(
        self, database: TestDatabase, tenants: TenantDatabase, alice: Principal, worker: UUID
    ) -> None:
        thread = await make_thread(tenants, alice)
        first = RunState.PENDING
        async with bound(database, "owner", alice) as connection:
            refused = await self.insert(connection, alice, thread, first, worker, fence=1)
            assert refused == IMPOSSIBLE
            assert await self.insert(connection, alice, thread, first, worker) == ""

    async def insert(
        self,
        connection: asyncpg.Connection,
        person: Principal,
        thread: UUID,
        state: RunState,
        worker: UUID,
        fence: int = 0,
    ) -> str:
        try:
            async with connection.transaction():
                await connection.execute(
                    """
                    INSERT INTO runs (user_id, run_id, thread_id, assistant_id, graph_id, request,
                      state, fence, worker_id, ended_at, due_at, created_at, updated_at)
                    VALUES ($1, $2, $3, $4, 'agent', '{}', $5::text::run_state, $6,
                      CASE WHEN $5 = 'running' THEN $7::uuid END,
                      CASE WHEN $5 = ANY ($8) THEN now() END, now(), now(), now())
                    """,
                    person.user_id,
                    uuid4(),
                    thread,
                    ASSISTANT,
                    state.value,
                    fence,
                    worker,
                    list(ENDED),
                )
        except asyncpg.PostgresError as error:
            return str(error.sqlstate)
        return ""


class TestAFence:
    @pytest.mark.parametrize("state", RunState)
    async def test_never_falls(
        self, state: RunState, superuser: asyncpg.Connection, run_id: UUID, worker: UUID
    ) -> None:
        await put_into(superuser, run_id, state, worker)
        with pytest.raises(asyncpg.PostgresError, match="fence never falls") as refused:
            await superuser.execute("UPDATE runs SET fence = fence - 1")
        assert refused.value.sqlstate == IMPOSSIBLE

    @pytest.mark.parametrize(
        ("before", "after"),
        [(RunState.PENDING, RunState.RUNNING), (RunState.RUNNING, RunState.PENDING)],
    )
    async def test_rises_whenever_a_run_changes_hands(
        self,
        before: RunState,
        after: RunState,
        superuser: asyncpg.Connection,
        run_id: UUID,
        worker: UUID,
    ) -> None:
        await put_into(superuser, run_id, before, worker)
        with pytest.raises(asyncpg.PostgresError, match="higher fence") as refused:
            await superuser.execute(
                "UPDATE runs SET state = $1::text::run_state, worker_id = $2",
                after.value,
                worker if after == RunState.RUNNING else None,
            )
        assert refused.value.sqlstate == IMPOSSIBLE


class TestTheTimeThatARunRan:
    @pytest.mark.parametrize(("began", "expected"), [("-1 hour", 3600.0), ("1 hour", 0.0)])
    async def test_is_added_up_and_never_falls_though_the_clock_is_set_back(
        self,
        began: str,
        expected: float,
        superuser: asyncpg.Connection,
        run_id: UUID,
        worker: UUID,
    ) -> None:
        await put_into(superuser, run_id, RunState.RUNNING, worker)
        await superuser.execute(
            "UPDATE runs SET claimed_at = clock_timestamp() + $1::text::interval", began
        )
        seconds = await superuser.fetchval(
            "UPDATE runs SET state = 'pending', fence = fence + 1, worker_id = NULL"
            " RETURNING active_seconds"
        )
        # However long the two statements took; none of it where the time was set back.
        assert expected <= seconds <= expected * 1.1
