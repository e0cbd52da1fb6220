"""One gateway and one service for all tests; a new browser for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.dev.ports import free_port
from tests.acceptance.gateway.process import Gateway, running
from tests.acceptance.gateway.service import Service, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture(scope="package")
async def watched_service() -> AsyncIterator[Service]:
    async with serving() as service:
        yield service


@pytest.fixture(scope="package")
async def shared_gateway(
    watched_service: Service, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Gateway]:
    key = tmp_path_factory.mktemp("gateway") / "key.json"
    async with running(watched_service, key, free_port()) as gateway:
        yield gateway


@pytest.fixture
def service(watched_service: Service) -> Service:
    watched_service.forget()
    return watched_service


@pytest.fixture
async def gateway(shared_gateway: Gateway, service: Service) -> AsyncIterator[Gateway]:
    visitor = Gateway(shared_gateway.process, shared_gateway.url)
    async with visitor.browser:
        yield visitor


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return tmp_path / "data" / "gateway-key.json"
