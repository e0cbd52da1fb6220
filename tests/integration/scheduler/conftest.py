"""Pools, seats, and people who want them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import ClaimedRun, Principal
from tenancy.scheduler.pools import PoolDatabase, PoolDeclaration
from tenancy.scheduler.seats import Asked, PoolFailure, SeatDatabase, Settled
from tests.support.tenancy import (
    MODEL,
    TestDatabase,
    claim_runs,
    expire_leases,
    make_thread,
    make_worker,
    queue_run,
)

CONTEXT, OUTPUT = 1000, 500
HIGHEST = CONTEXT + 2 * OUTPUT
"""What a call may cost at most, in tokens."""
COOLDOWN, TAKE_UP = 600.0, 300.0
"""Longer than any test takes: time goes on where a test says so."""
SET_LIMITS = (
    "INSERT INTO user_limits (user_id, limits) VALUES ($1, $2::text::jsonb)"
    " ON CONFLICT (user_id) DO UPDATE SET limits = EXCLUDED.limits"
)


def pool(
    name: str = "default",
    capacity: int = 1,
    model: str = MODEL,
    server: str | None = None,
    server_capacity: int | None = None,
) -> PoolDeclaration:
    """A pool, on a server of its own unless it says otherwise."""
    where = server or name
    return PoolDeclaration(
        name, where, f"http://{where}.test", server_capacity, model, capacity, CONTEXT, OUTPUT
    )


@dataclass
class Stage:
    """A scheduler with one worker; people get runs on it as they need them."""

    tenants: TenantDatabase
    dispatch: DispatchDatabase
    seats: SeatDatabase
    pools: PoolDatabase
    superuser: asyncpg.Connection
    worker: UUID
    runs: dict[UUID, ClaimedRun] = field(default_factory=dict)

    async def run_of(self, person: Principal, priority: int = 0) -> ClaimedRun:
        """A run of a person's that the worker holds."""
        await queue_run(
            self.tenants, person, await make_thread(self.tenants, person), priority=priority
        )
        (run,) = await claim_runs(self.dispatch, self.worker, 1)
        return run

    async def ask(
        self, run: ClaimedRun, call_id: UUID | None = None, model: str = MODEL
    ) -> tuple[UUID, Asked]:
        """Ask for a seat for a call of a run."""
        call_id = call_id or uuid4()
        return call_id, await self.seats.take(run, call_id, self.worker, model, {})

    async def take(self, run: ClaimedRun, model: str = MODEL) -> UUID:
        """A call that has its seat at once."""
        call, asked = await self.ask(run, model=model)
        assert asked.outcome == "taken"
        return call

    async def wait(self, run: ClaimedRun, model: str = MODEL) -> UUID:
        """A call that has to wait for its seat."""
        call, asked = await self.ask(run, model=model)
        assert asked.outcome == "waiting"
        return call

    async def outcome(self, run: ClaimedRun, call: UUID) -> str:
        """What a call is told that looks whether it has its seat."""
        return (await self.seats.take_up(run.user_id, call, {})).outcome

    async def settle(
        self,
        run: ClaimedRun,
        call_id: UUID,
        prompt: int = 100,
        output: int = 50,
        failure: PoolFailure | None = None,
        model: str = MODEL,
    ) -> Settled:
        """End a call."""
        return await self.seats.settle(run.user_id, call_id, model, prompt, output, failure)

    async def tend(self) -> tuple[UUID, ...]:
        """Free what time has run out for; the calls that were given a seat by it."""
        return await self.seats.tend(COOLDOWN, TAKE_UP)

    async def limit(self, person: Principal, limits: str) -> None:
        """Give a person limits of their own; whoever is in the queues is not told of it."""
        await self.superuser.execute(SET_LIMITS, person.user_id, limits)

    async def vtime(self, person: Principal) -> int:
        """A person's virtual time at the default model, in thousandths of a token."""
        return int(
            await self.superuser.fetchval(
                "SELECT vtime FROM model_users WHERE user_id = $1 AND model = $2",
                *(person.user_id, MODEL),
            )
        )

    async def age(self, what: str, seconds: float) -> None:
        """Let a moment of every call lie further back."""
        await self.superuser.execute(
            f"UPDATE model_calls SET {what} = {what} - make_interval(secs => $1)", seconds
        )

    async def lose_worker(self) -> None:
        """Let the worker be dead, and another one there; runs go back into the queue."""
        await expire_leases(self.superuser)
        await self.dispatch.reap_expired_leases()
        self.worker = await make_worker(self.dispatch)

    async def again(self, run: ClaimedRun) -> ClaimedRun:
        """Let the worker be dead, and the next one have its runs; this one as it is then."""
        await self.lose_worker()
        claims = await claim_runs(self.dispatch, self.worker, 100)
        return next(claim for claim in claims if claim.run_id == run.run_id)

    async def value(self, statement: str, *arguments: Any) -> Any:
        """What the database holds."""
        return await self.superuser.fetchval(statement, *arguments)

    async def disagreements(self) -> list[tuple[str, UUID]]:
        """On what seats, leases and queue do not agree."""
        rows = await self.superuser.fetch(
            "SELECT kind, subject FROM dispatch.check_agreement($1)", COOLDOWN
        )
        return [(row["kind"], row["subject"]) for row in rows]


@pytest.fixture
async def stage(
    database: TestDatabase,
    tenants: TenantDatabase,
    dispatch: DispatchDatabase,
    superuser: asyncpg.Connection,
) -> AsyncIterator[Stage]:
    """Whatever happened on it, seats, leases and queue agree in the end."""
    seats = SeatDatabase(database.settings("dispatch"))
    pools = PoolDatabase(database.settings("dispatch"))
    try:
        at_hand = Stage(tenants, dispatch, seats, pools, superuser, await make_worker(dispatch))
        yield at_hand
        assert await at_hand.disagreements() == []
    finally:
        await seats.close()
        await pools.close()
