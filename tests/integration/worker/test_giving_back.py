"""What a worker does with a run that it cannot bring to its end while it lives itself."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from app.worker import claim, writer
from tenancy.database import retry
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.engine import DatabaseUnavailable
from tests.support.deployment import GRAPHS
from tests.support.frames import new_thread, read_run, start_run
from tests.support.postgres import PostgresServer
from tests.support.service import running_service


class FailsAtFirst:
    """Raises an error a number of times, then does what it stands for."""

    def __init__(self, real: Any, error: Exception, times: int) -> None:
        self._real = real
        self._error = error
        self._left = times

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._left:
            self._left -= 1
            raise self._error
        return await self._real(*args, **kwargs)


@pytest.mark.parametrize(
    ("write", "error"),
    [
        ("append_events", DatabaseUnavailable()),
        ("settle_run", DatabaseUnavailable()),
        ("settle_run", RuntimeError("nobody foresaw this")),
    ],
)
async def test_a_run_whose_writes_fail_for_good_is_tried_again(
    write: str, error: Exception, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "RETRY_SECONDS", 0.0)
    monkeypatch.setattr(claim, "AWAY_SECONDS", 0.05)
    monkeypatch.setattr(writer, write, FailsAtFirst(getattr(writer, write), error, 2))
    async with running_service(postgres) as service:
        client = service.client("ada")
        thread_id = await new_thread(client)
        frames = await read_run(client, await start_run(client, thread_id, "Hello"))
        assert frames[-1].data["status"] == "success"
        state = (await client.get(f"/threads/{thread_id}/state")).json()
        assert [each["type"] for each in state["values"]["messages"]] == ["human", "ai"]


async def test_a_worker_goes_on_claiming_after_an_error_that_nobody_foresaw(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = DispatchDatabase.claim_runs
    failures = iter([asyncpg.DeadlockDetectedError("deadlock")])

    async def claim(*args: Any) -> Any:
        for error in failures:
            raise error
        return await real(*args)

    monkeypatch.setattr(DispatchDatabase, "claim_runs", claim)
    async with running_service(postgres) as service:
        client = service.client("ada")
        thread_id = await new_thread(client)
        frames = await read_run(client, await start_run(client, thread_id, "Hello"))
        assert frames[-1].data["status"] == "success"


async def test_a_run_whose_claim_was_not_answered_is_executed_all_the_same(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = DispatchDatabase.claim_runs
    lost: list[Any] = []

    async def claim(*args: Any) -> Any:
        claimed = await real(*args)
        if claimed and not lost:
            lost.extend(claimed)
            raise DatabaseUnavailable
        return claimed

    monkeypatch.setattr(DispatchDatabase, "claim_runs", claim)
    async with running_service(postgres) as service:
        client = service.client("ada")
        location = await start_run(client, await new_thread(client), "Hello")
        frames = await read_run(client, location)
        assert frames[-1].data["status"] == "success"
        run = (await client.get(location)).json()
        assert (run["run_id"], run["attempt"]) == (str(lost[0].run_id), 2)


async def test_a_run_that_writes_to_another_thread_comes_to_an_end(
    postgres: PostgresServer,
) -> None:
    async with running_service(postgres, graphs=GRAPHS) as service:
        client = service.client("ada")
        own, other = await new_thread(client), await new_thread(client)
        there = {"thread_id": other}
        location = await start_run(client, own, assistant="trespassing", graph_input=there)
        frames = await read_run(client, location)
        assert frames[-1].data["status"] == "error"
        assert frames[-2].data["error"] == "graph_trespassed"
