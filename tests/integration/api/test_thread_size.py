"""A thread takes nothing large any more once it has grown too large."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from app.runs import thread_size
from tests.support.frames import new_thread
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service

LARGE = "a" * 600_000


@pytest.fixture(scope="module")
async def queue(postgres: PostgresServer) -> AsyncIterator[RunningService]:
    """A service whose runs stay in the queue: there is no worker."""
    async with running_service(postgres, worker=False) as running:
        yield running


@pytest.fixture(autouse=True)
def _small_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_size, "MOST_BYTES", 1_000_000)


def human(text: str, **fields: Any) -> dict[str, Any]:
    return {"messages": [{"type": "human", "content": text, **fields}]}


async def run(client: httpx.AsyncClient, thread_id: str, text: str) -> httpx.Response:
    body = {"assistant_id": "agent", "input": human(text), "if_not_exists": "create"}
    return await client.post(f"/threads/{thread_id}/runs", json=body)


async def change(client: httpx.AsyncClient, thread_id: str, text: str, **fields: Any) -> int:
    values = human(text, **fields)
    answer = await client.post(
        f"/threads/{thread_id}/state", json={"values": values, "as_node": "__start__"}
    )
    return answer.status_code


class TestAThreadThatHoldsTooMuch:
    @pytest.fixture
    async def client(self, queue: RunningService) -> httpx.AsyncClient:
        return queue.client("hoarder")

    @pytest.fixture
    async def full(self, client: httpx.AsyncClient) -> str:
        thread_id = await new_thread(client)
        for name in ("first", "second"):
            assert await change(client, thread_id, LARGE, id=name) == 200
        return thread_id

    async def test_refuses_what_is_large(self, client: httpx.AsyncClient, full: str) -> None:
        assert await change(client, full, LARGE) == 409
        refused = await run(client, full, LARGE)
        assert (refused.status_code, refused.json()["code"]) == (409, "thread_too_large")
        assert (await client.get(f"/threads/{full}/runs")).json() == []

    async def test_takes_what_is_small(self, client: httpx.AsyncClient, full: str) -> None:
        assert await change(client, full, "more") == 200
        assert (await run(client, full, "more")).status_code == 200

    async def test_is_nobody_elses_concern(
        self, queue: RunningService, client: httpx.AsyncClient, full: str
    ) -> None:
        assert (await run(client, await new_thread(client), LARGE)).status_code == 200
        stranger = queue.client("stranger")
        assert (await run(stranger, full, LARGE)).status_code == 200, "a thread of their own"


class TestAThreadWithTooMuchInItsQueue:
    async def test_refuses_what_is_large(self, queue: RunningService) -> None:
        client = queue.client("impatient")
        thread_id = await new_thread(client)
        answers = [(await run(client, thread_id, LARGE)).status_code for _ in range(3)]
        assert answers == [200, 200, 409]
        assert (await run(client, thread_id, "more")).status_code == 200


async def test_a_large_state_is_read_as_it_was_given(service: RunningService) -> None:
    client = service.client("reader")
    thread_id = await new_thread(client)
    texts = [f"{number}{LARGE}" for number in range(2)]
    for text in texts:
        assert await change(client, thread_id, text) == 200
    states = (await client.post(f"/threads/{thread_id}/history", json={})).json()
    assert [[each["content"] for each in state["values"]["messages"]] for state in states] == [
        texts,
        texts[:1],
    ]
    answers = await asyncio.gather(*[client.get(f"/threads/{thread_id}/state") for _ in range(3)])
    assert [answer.json() for answer in answers] == [states[0]] * 3
