"""The scripted model server as a process, steered over its control routes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.support.model_server import Script


@pytest.fixture
async def control() -> AsyncIterator[httpx.AsyncClient]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.model_server", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    url = (await process.stdout.readline()).decode().split()[-1]
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=20) as client:
        yield client
    process.terminate()
    await process.communicate()


class TestSteering:
    async def test_a_stalled_call_is_seen_and_released_from_outside(
        self, control: httpx.AsyncClient
    ) -> None:
        script = Script(text="a b", stall_at=1).model_dump()
        await control.post("/control/scripts", json=[script])
        body = {"model": "smollm2", "messages": [{"role": "user", "content": "hi"}]}
        asking = asyncio.create_task(control.post("/api/chat", json=body))
        seen = (await control.get("/control/requests?wait=stalled_at")).json()
        assert seen["tokens_sent"] == 1
        await control.post(f"/control/release/{seen['number']}")
        assert len((await asking).text.splitlines()) == 3

    async def test_a_client_that_leaves_is_seen_from_outside(
        self, control: httpx.AsyncClient
    ) -> None:
        await control.put("/control/default", json={"stall_at": 0})
        body = {"model": "smollm2", "messages": [{"role": "user", "content": "hi"}]}
        asking = asyncio.create_task(control.post("/api/chat", json=body))
        await control.get("/control/requests?wait=stalled_at")
        asking.cancel()
        gone = (await control.get("/control/requests?wait=disconnected_at")).json()
        assert gone["finished_at"] is None
