"""The whole service, where a test asks for it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service


@pytest.fixture(scope="session")
async def service(postgres: PostgresServer) -> AsyncIterator[RunningService]:
    """A running service with a worker, shared by the whole test run: use people of your own."""
    async with running_service(postgres, requests_per_minute=1_000_000) as running:
        yield running
