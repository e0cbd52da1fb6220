"""The whole service, where a test asks for it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service


@pytest.fixture
async def service(shared_service: RunningService) -> AsyncIterator[RunningService]:
    """A running service with a worker, and nothing of this test's under way at its end.

    A run that went on would take the script that the next test gives the model, and a script that
    was left would be the answer to the next test's run. A run that the model keeps waiting, or that
    waits behind such a one, takes none.
    """
    yield shared_service
    await shared_service.asks_no_model()
    shared_service.model.forget_scripts()


@pytest.fixture(scope="session")
async def shared_service(postgres: PostgresServer) -> AsyncIterator[RunningService]:
    """A running service with a worker, shared by the whole test run: use people of your own."""
    async with running_service(postgres, requests_per_minute=1_000_000) as running:
        yield running
