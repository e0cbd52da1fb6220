"""A run of Alice's, and an embedding model that it can ask."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from app.memory.embedding import Embedder
from app.memory.memories import Memories
from app.memory.search import MemorySearch
from app.models.scope import RunScope
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import ClaimedRun, Principal
from tenancy.scheduler.limits import Limits
from tests.support.embedding import EMBEDDING_MODEL, EmbeddingServer
from tests.support.models import FreeSeats, model_calls
from tests.support.tenancy import claimed_run, make_thread

PATIENCE = 60.0
LIMITS: Limits = {"memory_bytes": 64 * 1024 * 1024}

Searching = Callable[..., MemorySearch]


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingServer]:
    async with EmbeddingServer() as running:
        yield running


@pytest.fixture
def seats(server: EmbeddingServer) -> FreeSeats:
    return FreeSeats(server.url)


@pytest.fixture
async def scope(seats: FreeSeats) -> AsyncIterator[RunScope]:
    """The run in whose name embeddings are asked for."""
    async with model_calls(seats) as entered:
        yield entered


@pytest.fixture
async def run(tenants: TenantDatabase, dispatch: DispatchDatabase, alice: Principal) -> ClaimedRun:
    return await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))


@pytest.fixture
def memories(tenants: TenantDatabase) -> Memories:
    """What people do with their memories in a web process."""
    return Memories(tenants, LIMITS)


@pytest.fixture
def embedder(scope: RunScope) -> Embedder:
    return Embedder(EMBEDDING_MODEL, rest_seconds=0)


@pytest.fixture
def searching(tenants: TenantDatabase, run: ClaimedRun, embedder: Embedder) -> Searching:
    """A search in the run's name, as it is or otherwise."""

    def search(**changes: Any) -> MemorySearch:
        chosen: dict[str, Any] = {
            "limits": LIMITS,
            "embedder": embedder,
            "seconds": PATIENCE,
            **changes,
        }
        return MemorySearch(tenants, run, chosen.pop("limits"), chosen.pop("embedder"), **chosen)

    return search
