"""A node that is no coroutine waits for the model in a thread, which nobody can cancel."""

from __future__ import annotations

import time

from tests.acceptance.conftest import Running
from tests.support.frames import new_thread
from tests.support.model_server import Script

AT_ONCE_SECONDS = 1.0
"""It takes 0.03 s on a machine that is half busy."""


class TestACancelledRun:
    async def test_ends_the_models_answer_though_a_thread_waits_for_it(
        self, running: Running
    ) -> None:
        model = running.deployment.model
        client = running.deployment.http("thea", running.first)
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
        assert stalled.disconnected_at - asked_at < AT_ONCE_SECONDS
        assert (await client.get(location)).json()["state"] == "cancelled"
        async with running.deployment.superuser() as connection:
            calls = "SELECT count(*) FROM model_calls WHERE run_id = $1"
            assert await connection.fetchval(calls, run["run_id"]) == 0
