"""A deployment of real processes, shared by all tests that only use it: be people of your own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from tests.support.deployment import Deployment, deployed
from tests.support.processes import StoaProcess
from tests.support.tenancy import TestDatabase


@dataclass
class Running:
    """A deployment with two web processes and a worker."""

    deployment: Deployment
    first: StoaProcess
    second: StoaProcess


@pytest.fixture(scope="session")
async def running(
    template: TestDatabase, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Running]:
    async with deployed(template, tmp_path_factory.mktemp("deployment")) as deployment:
        first = await deployment.start_web()
        second = await deployment.start_web()
        # Longer than it takes to find a server that is back.
        await deployment.start_worker(STOA_POOL_WAIT_SECONDS="5")
        yield Running(deployment, first, second)
