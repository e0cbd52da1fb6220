"""Services in which one sees what waits."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.deployment import GRAPHS
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service


@pytest.fixture(scope="package")
async def narrow(postgres: PostgresServer) -> AsyncIterator[RunningService]:
    """A service whose model serves one call at a time. Use people of your own."""
    async with running_service(postgres, graphs=GRAPHS, ollama_capacity=1) as running:
        yield running


@pytest.fixture(scope="package")
async def idle(postgres: PostgresServer) -> AsyncIterator[RunningService]:
    """A service whose runs stay in the queue: there is no worker. Use people of your own."""
    async with running_service(postgres, graphs=GRAPHS, worker=False) as running:
        yield running
