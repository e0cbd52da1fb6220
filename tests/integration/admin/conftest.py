"""A service of the operators' own, where pools and plans may be changed at will."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tenancy.acts import Act
from tenancy.scheduler.oversight import OversightDatabase
from tests.integration.scheduler.conftest import stage as stage
from tests.support.held_ports import held_port
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service
from tests.support.tenancy import PATIENCE, TestDatabase

ADMINS = ["stoa-admins"]
ACT = Act("a test", account="somebody")
"""By which operators change something, where it does not matter who they are."""
CANARY = "the canary sings at midnight"
LOOK_SECONDS = 0.02
A_CALL_IS_OPEN = "SELECT EXISTS (SELECT FROM model_calls)"


@pytest.fixture(scope="package")
async def shared_service(postgres: PostgresServer) -> AsyncIterator[RunningService]:
    with held_port() as port:
        async with running_service(
            postgres, metrics_port=port, requests_per_minute=1_000_000
        ) as running:
            yield running


@pytest.fixture
async def service(service: RunningService) -> AsyncIterator[RunningService]:
    """Where nothing of this test's is under way at its end, nor counted after it."""
    yield service
    await service.asks_no_model()
    superuser = await TestDatabase(service.postgres, service.database).connect("owner")
    try:
        async with asyncio.timeout(PATIENCE):
            while await superuser.fetchval(A_CALL_IS_OPEN):  # noqa: ASYNC110
                await asyncio.sleep(LOOK_SECONDS)
    finally:
        await superuser.close()


@pytest.fixture
async def oversight(database: TestDatabase) -> AsyncIterator[OversightDatabase]:
    """The operators' door to the queues."""
    door = OversightDatabase(database.settings("dispatch"))
    try:
        yield door
    finally:
        await door.close()


@pytest.fixture
def operator(service: RunningService) -> httpx.AsyncClient:
    """Somebody whose assertion says that they are an operator."""
    return service.client("the operator", groups=ADMINS)


@pytest.fixture
def person(service: RunningService) -> httpx.AsyncClient:
    """Somebody new, who is no operator, and says what nobody else may read."""
    return service.client(f"{CANARY} {uuid4().hex}", groups=["singers"])


async def id_of(client: httpx.AsyncClient) -> str:
    """A person's id, as operators know them."""
    user_id: str = (await client.get("/me")).json()["user_id"]
    return user_id


async def start(
    client: httpx.AsyncClient, thread: str | None = None, **more: Any
) -> httpx.Response:
    """Begin a run with a sentence of the person's own."""
    if thread is None:
        made = await client.post("/threads", json={"metadata": {CANARY: CANARY}})
        thread = made.json()["thread_id"]
    message = {"role": "user", "content": CANARY, "id": uuid4().hex}
    body = {"assistant_id": "agent", "input": {"messages": [message]}, "metadata": {"a": CANARY}}
    return await client.post(f"/threads/{thread}/runs", json={**body, **more})


async def answer(client: httpx.AsyncClient, method: str, path: str, **more: Any) -> Any:
    """What an operator is answered, which never has a word of a person's in it."""
    response = await client.request(method, path, **more)
    assert response.is_success, response.text
    assert "canary" not in response.text.lower()
    return response.json() if response.content else None
