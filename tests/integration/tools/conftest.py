"""A run with its worker's tools, and a server that records what it is told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from app.worker import tool_listings
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import Principal
from tests.integration.tools.office import Office
from tests.support.tenancy import TestDatabase, claimed_run, make_thread
from tests.support.tool_servers.pools import SECONDS
from tests.support.tool_servers.recording import RecordingServer, recording_server


@pytest.fixture
async def server() -> AsyncIterator[RecordingServer]:
    async with recording_server() as running:
        yield running


@pytest.fixture
async def office(
    database: TestDatabase,
    tenants: TenantDatabase,
    dispatch: DispatchDatabase,
    alice: Principal,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Office]:
    monkeypatch.setattr(tool_listings, "LISTING_SECONDS", SECONDS)
    thread = await make_thread(tenants, alice)
    run = await claimed_run(tenants, dispatch, alice, thread)
    async with AsyncExitStack() as stack:
        yield Office(database, tenants, run, thread, tmp_path, stack)
