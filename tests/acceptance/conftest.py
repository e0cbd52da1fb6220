"""A deployment of real processes, shared by all tests that only use it: be people of your own."""

from __future__ import annotations

import asyncio
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


OPEN_RUNS = "SELECT count(*) FROM runs WHERE state IN ('pending', 'running')"
PATIENCE = 30.0
LOOK_SECONDS = 0.02


@pytest.fixture
async def running(deployed_once: Running) -> AsyncIterator[Running]:
    """The deployment, and nothing of this test's under way in it when the next one begins.

    A run that went on would take the script that the next test gives the model.
    """
    yield deployed_once
    async with deployed_once.deployment.superuser() as connection:
        async with asyncio.timeout(PATIENCE):
            while await connection.fetchval(OPEN_RUNS):  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(LOOK_SECONDS)


@pytest.fixture(scope="session")
async def deployed_once(
    template: TestDatabase, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Running]:
    async with deployed(template, tmp_path_factory.mktemp("deployment")) as deployment:
        first = await deployment.start_web()
        second = await deployment.start_web()
        # Longer than it takes to find a server that is back.
        await deployment.start_worker(STOA_POOL_WAIT_SECONDS="5")
        yield Running(deployment, first, second)
