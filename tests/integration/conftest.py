"""A real PostgreSQL for everything in here, and the whole service where a test asks for it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.postgres import PostgresServer, postgres_server
from tests.support.service import RunningService, running_service


@pytest.fixture(scope="session")
async def postgres() -> AsyncIterator[PostgresServer]:
    """The server that this test run uses."""
    async with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
async def service(postgres: PostgresServer) -> AsyncIterator[RunningService]:
    """A running service with a worker, shared by the whole test run: use people of your own."""
    async with running_service(postgres) as running:
        yield running
