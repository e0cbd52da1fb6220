"""One gateway and one service for all tests; a new browser for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.acceptance.gateway.process import Gateway, running
from tests.acceptance.gateway.service import Service, serving
from tests.support.held_ports import held_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
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
    with held_port() as port:
        async with running(watched_service, key, port) as gateway:
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
def port() -> Iterator[int]:
    with held_port() as port:
        yield port


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return tmp_path / "data" / "gateway-key.json"
