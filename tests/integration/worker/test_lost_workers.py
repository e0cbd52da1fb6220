"""A run whose workers were lost as often as it may be: it fails, and can be gone on with."""

from __future__ import annotations

import pytest

from tenancy.errors import LeaseLost
from tests.integration.worker import traps
from tests.integration.worker.test_langgraph import begin
from tests.support.frames import read_run
from tests.support.lost_writes import lose_a_write
from tests.support.postgres import PostgresServer
from tests.support.service import running_service


async def test_a_run_without_attempts_left_fails_and_an_empty_run_goes_on_with_it(
    postgres: PostgresServer,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = traps.look_anew()
    graphs = traps.declare(tmp_path_factory.mktemp("graphs"))
    async with running_service(postgres, graphs=graphs, max_attempts=1) as service:
        client = service.client("ada")
        thread_id, location = await begin(client, "pair", {"done": ["asked"]})
        await seen.begun.wait()
        lose_a_write(monkeypatch, error=LeaseLost())
        seen.go.set()
        frames = await read_run(client, location)
        assert (frames[-2].event, frames[-2].data["error"]) == ("error", "worker_lost")
        run = (await client.get(location)).json()
        assert (run["state"], run["error"]["code"]) == ("error", "worker_lost")
        assert seen.executed == ["quick", "slow"]  # the last attempt executes nothing
        seen.go_slowly.set()
        body = {"assistant_id": "pair", "input": None}
        answer = await client.post(f"/threads/{thread_id}/runs", json=body)
        assert answer.status_code == 200, answer.text
        frames = await read_run(client, answer.headers["content-location"])
        assert frames[-1].data["status"] == "success"
        state = (await client.get(f"/threads/{thread_id}/state")).json()
        assert sorted(state["values"]["done"]) == ["asked", "quick", "slow"]
