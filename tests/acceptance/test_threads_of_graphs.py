"""A node that is no coroutine waits for the model in a thread, which nobody can cancel."""

from __future__ import annotations

import asyncio
import time

import httpx

from tests.acceptance.conftest import LOOK_SECONDS, PATIENCE, Running
from tests.support.frames import new_thread
from tests.support.model_server import Script

AT_ONCE_SECONDS = 1.0
"""It takes 0.03 s on a machine that is half busy."""
ROUNDS = 3
"""On a busy machine, one of a few is as quick."""


class TestACancelledRun:
    async def test_ends_the_models_answer_though_a_thread_waits_for_it(
        self, running: Running
    ) -> None:
        client = running.deployment.http("thea", running.first)
        took = [await self.seconds_until_the_answer_ends(running, client) for _ in range(ROUNDS)]
        assert min(took) < AT_ONCE_SECONDS

    async def seconds_until_the_answer_ends(
        self, running: Running, client: httpx.AsyncClient
    ) -> float:
        """Begin an answer, cancel its run, and see both end."""
        model = running.deployment.model
        model.enqueue(Script(stall_at=1))
        stalls = running.deployment.stalls
        gone = sum(each.disconnected_at is not None for each in model.requests)
        body = {
            "assistant_id": "threaded",
            "input": {"messages": [{"role": "user", "content": "hi"}]},
        }
        thread = await new_thread(client)
        run = (await client.post(f"/threads/{thread}/runs", json=body)).json()
        location = f"/threads/{thread}/runs/{run['run_id']}"
        stalled = await model.wait_for_stall(stalls + 1)
        asked_at = time.monotonic()
        await client.post(f"{location}/cancel?wait=1")
        await model.wait_for_disconnect(gone + 1)
        assert stalled.disconnected_at is not None
        assert (await client.get(location)).json()["state"] == "cancelled"
        async with running.deployment.superuser() as connection, asyncio.timeout(PATIENCE):
            calls = "SELECT count(*) FROM model_calls WHERE run_id = $1"
            while await connection.fetchval(calls, run["run_id"]):  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(LOOK_SECONDS)
        return stalled.disconnected_at - asked_at
