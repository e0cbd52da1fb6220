"""Workers that die, and workers that are told to go: somebody else finishes the answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.support.deployment import STEADY_LEASE, Deployment, deployed
from tests.support.frames import Frame, new_thread, read_run, start_run
from tests.support.model_server import Script
from tests.support.processes import PATIENCE, StoaProcess
from tests.support.tenancy import TestDatabase

ANSWER = "one two three four five six"


@pytest.fixture(scope="module")
async def deployment(
    template: TestDatabase, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Deployment]:
    async with deployed(template, tmp_path_factory.mktemp("workers")) as deployment:
        yield deployment


@pytest.fixture(scope="module")
async def web(deployment: Deployment) -> StoaProcess:
    return await deployment.start_web()


QUICK_DRAIN = {"STOA_DRAIN_SECONDS": "0.2"}
"""For answers that stand still: nobody waits for their end."""


@dataclass
class HalfAnswered:
    """A run whose only worker stopped talking in mid-answer, and somebody who reads it."""

    client: httpx.AsyncClient
    thread_id: str
    location: str
    reading: asyncio.Task[list[Frame]]


@asynccontextmanager
async def half_answered(
    deployment: Deployment, web: StoaProcess, person: str
) -> AsyncIterator[HalfAnswered]:
    client = deployment.http(person, web)
    thread_id = await new_thread(client)
    stalls = deployment.stalls
    deployment.model.enqueue(Script(text=ANSWER, stall_at=3), Script(text=ANSWER))
    location = await start_run(client, thread_id, "Count.")
    reading = asyncio.create_task(read_run(client, location))
    await deployment.model.wait_for_stall(stalls + 1)
    try:
        yield HalfAnswered(client, thread_id, location, reading)
    finally:
        reading.cancel()


async def run_of(half: HalfAnswered) -> dict[str, Any]:
    run: dict[str, Any] = (await half.client.get(half.location)).json()
    return run


async def said_in(half: HalfAnswered) -> list[tuple[str, str]]:
    state = (await half.client.get(f"/threads/{half.thread_id}/state")).json()
    return [(each["type"], each["content"]) for each in state["values"]["messages"]]


class TestAWorkerThatIsKilled:
    async def test_another_one_finishes_the_answer_and_the_question_is_there_once(
        self, deployment: Deployment, web: StoaProcess
    ) -> None:
        doomed = await deployment.start_worker(**STEADY_LEASE)
        async with half_answered(deployment, web, "killed") as half:
            _, other = await asyncio.gather(doomed.kill(), deployment.start_worker(**STEADY_LEASE))
            await deployment.lease_over(doomed)
            frames = await half.reading
            assert await said_in(half) == [("human", "Count."), ("ai", ANSWER)]
            run = await run_of(half)
        attempts = [frame.data["attempt"] for frame in frames if frame.event == "metadata"]
        assert attempts == [1, 2]
        assert (run["state"], run["attempt"]) == ("success", 2)
        # What the first had half streamed is replaced: after the second `metadata` it all comes.
        second = [frame.event for frame in frames].index("metadata", 1)
        again = [frame.data[0] for frame in frames[second:] if frame.event == "messages"]
        assert "".join(chunk["content"] for chunk in again) == ANSWER
        assert frames[second + 1].event == "values"
        assert frames[-1].data["status"] == "success"
        ids = [frame.id for frame in frames if frame.id is not None]
        assert ids == list(range(1, len(ids) + 1))
        await other.terminate()


class TestAWorkerThatIsToldToGo:
    async def test_its_run_goes_on_elsewhere_at_once(
        self, deployment: Deployment, web: StoaProcess
    ) -> None:
        # With a long lease: nobody waits until it has run out.
        lease = {"STOA_LEASE_SECONDS": "600"}
        leaving, staying = await asyncio.gather(
            deployment.start_worker(**QUICK_DRAIN, **lease),
            deployment.start_worker(**QUICK_DRAIN, **lease, STOA_WORKER_CONCURRENCY="1"),
        )
        async with half_answered(deployment, web, "drained") as half:
            holder, other = await _holder_first(deployment, leaving, staying)
            async with asyncio.timeout(PATIENCE):
                assert await holder.terminate() == 0
                frames = await half.reading
            assert await said_in(half) == [("human", "Count."), ("ai", ANSWER)]
            assert (await run_of(half))["state"] == "success"
        assert frames[-1].data["status"] == "success"
        assert await other.terminate() == 0

    async def test_it_ends_though_a_thread_of_a_graph_never_does(
        self, deployment: Deployment, web: StoaProcess
    ) -> None:
        client = deployment.http("stuck", web)
        thread_id = await new_thread(client)
        # Long enough for its thread to begin.
        worker = await deployment.start_worker(STOA_RUN_SECONDS="4")
        body = {"assistant_id": "stuck", "input": {"numbers": [1]}}
        run = (await client.post(f"/threads/{thread_id}/runs", json=body)).json()
        frames = await read_run(client, f"/threads/{thread_id}/runs/{run['run_id']}")
        assert frames[-1].data["status"] == "timeout"
        async with asyncio.timeout(PATIENCE):
            assert await worker.terminate() == 0
        assert "ended by force" in worker.output

    async def test_it_ends_though_a_graph_takes_no_notice_and_the_run_goes_on_elsewhere(
        self, deployment: Deployment, web: StoaProcess
    ) -> None:
        client = deployment.http("deaf", web)
        thread_id = await new_thread(client)
        leaving = await deployment.start_worker(**QUICK_DRAIN)
        location = await start_run(
            client,
            thread_id,
            modes=("values",),
            assistant="deaf",
            graph_input={"begun": False},
        )
        async with client.stream("GET", f"{location}/stream") as reading:
            async for line in reading.aiter_lines():
                if "true" in line:
                    break
        async with asyncio.timeout(PATIENCE):
            await leaving.terminate()
        assert "a graph takes no notice of its end" in leaving.output, leaving.output
        assert (await client.get(location)).json()["state"] == "pending"
        assert (await client.post(f"{location}/cancel")).json()["state"] == "cancelled"

    async def test_a_run_from_a_checkpoint_begins_no_second_branch_there(
        self, deployment: Deployment, web: StoaProcess
    ) -> None:
        client = deployment.http("branching", web)
        thread_id = await new_thread(client)
        leaving = await deployment.start_worker(**QUICK_DRAIN)
        await read_run(client, await start_run(client, thread_id, "First"))
        state = (await client.get(f"/threads/{thread_id}/state")).json()
        stalls = deployment.stalls
        deployment.model.enqueue(Script(text=ANSWER, stall_at=3), Script(text=ANSWER))
        location = await start_run(
            client, thread_id, "Other", checkpoint_id=state["checkpoint"]["checkpoint_id"]
        )
        await deployment.model.wait_for_stall(stalls + 1)
        _, staying = await asyncio.gather(leaving.terminate(), deployment.start_worker())
        frames = await read_run(client, location)
        history = (await client.post(f"/threads/{thread_id}/history", json={"limit": 50})).json()
        begun = [each for each in history if each["parent_checkpoint"] == state["checkpoint"]]
        assert len(begun) == 1
        said = [each["content"] for each in history[0]["values"]["messages"]]
        assert said == ["First", "You said: First", "Other", ANSWER]
        assert frames[-1].data["status"] == "success"
        await staying.terminate()


class TestTwoWorkers:
    async def test_share_the_queue(self, deployment: Deployment, web: StoaProcess) -> None:
        one, two = await asyncio.gather(
            deployment.start_worker(STOA_WORKER_CONCURRENCY="1"),
            deployment.start_worker(STOA_WORKER_CONCURRENCY="1"),
        )
        client = deployment.http("shared", web)
        stalls = deployment.stalls
        deployment.model.enqueue(*[Script(text=ANSWER, stall_at=1)] * 2)
        locations = [await start_run(client, await new_thread(client)) for _ in range(4)]
        # Both stand in an answer at the same time, though each takes one run only.
        for number in (1, 2):
            await deployment.model.wait_for_stall(stalls + number)
        async with deployment.superuser() as connection:
            holders = await connection.fetch(
                "SELECT DISTINCT worker_id FROM runs WHERE state = 'running'"
            )
        assert len(holders) == 2
        for number in (1, 2):
            request = await deployment.model.wait_for_stall(stalls + number)
            deployment.model.release(request)
        for location in locations:
            frames = await read_run(client, location)
            assert frames[-1].data["status"] == "success"
        await asyncio.gather(one.terminate(), two.terminate())


async def _holder_first(
    deployment: Deployment, one: StoaProcess, two: StoaProcess
) -> tuple[StoaProcess, StoaProcess]:
    """The two workers, the one that has the run first."""
    async with deployment.superuser() as connection:
        pid = await connection.fetchval(
            "SELECT pid FROM runs JOIN workers USING (worker_id) WHERE state = 'running'"
        )
    return (one, two) if one.process.pid == pid else (two, one)
