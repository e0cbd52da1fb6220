"""A stage per module: web processes are slow to start, and all but a few tests leave them alone."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.crash.stage import Stage, staged
from tests.support.deployment import deployed
from tests.support.tenancy import TestDatabase


@pytest.fixture(scope="module")
async def stage(
    template: TestDatabase, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stage]:
    logs = tmp_path_factory.mktemp("crash")
    async with deployed(template, logs) as deployment, staged(deployment) as stage:
        yield stage
