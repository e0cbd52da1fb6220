"""Pools, seats, and people who want them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from uuid import UUID, uuid4

import pytest

from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import ClaimedRun, Principal
from tenancy.scheduler.pools import PoolDatabase, PoolDeclaration
from tenancy.scheduler.seats import Asked, SeatDatabase, Settled
from tests.support.tenancy import (
    MODEL,
    TestDatabase,
    claim_runs,
    make_thread,
    make_worker,
    queue_run,
)


def pool(name: str = "default", capacity: int = 1, model: str = MODEL) -> PoolDeclaration:
    """A pool on a server of its own."""
    return PoolDeclaration(name, name, f"http://{name}.test", None, model, capacity, 1000, 500)


@dataclass
class Stage:
    """A scheduler with one worker; people get runs on it as they need them."""

    tenants: TenantDatabase
    dispatch: DispatchDatabase
    seats: SeatDatabase
    pools: PoolDatabase
    worker: UUID
    runs: dict[UUID, ClaimedRun] = field(default_factory=dict)

    async def run_of(self, person: Principal) -> ClaimedRun:
        """A run of a person's that the worker holds."""
        await queue_run(self.tenants, person, await make_thread(self.tenants, person))
        (run,) = await claim_runs(self.dispatch, self.worker, 1)
        return run

    async def ask(
        self, run: ClaimedRun, call_id: UUID | None = None, model: str = MODEL
    ) -> tuple[UUID, Asked]:
        """Ask for a seat for a call of a run."""
        call_id = call_id or uuid4()
        return call_id, await self.seats.take(run, call_id, self.worker, model, {})

    async def settle(
        self, run: ClaimedRun, call_id: UUID, prompt: int = 100, output: int = 50
    ) -> Settled:
        """End a call of the default model."""
        return await self.seats.settle(run.user_id, call_id, MODEL, prompt, output)


@pytest.fixture
async def stage(
    database: TestDatabase, tenants: TenantDatabase, dispatch: DispatchDatabase
) -> AsyncIterator[Stage]:
    seats = SeatDatabase(database.settings("dispatch"))
    pools = PoolDatabase(database.settings("dispatch"))
    try:
        yield Stage(tenants, dispatch, seats, pools, await make_worker(dispatch))
    finally:
        await seats.close()
        await pools.close()
