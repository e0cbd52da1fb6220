"""Runs that are to begin later, and runs that are to begin before one's others."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime
from typing import Any

import httpx

from tests.support.frames import Frame, follow, new_thread, read_run, start_run
from tests.support.limits import limit
from tests.support.model_server import Script
from tests.support.scheduled import MUCH_LATER, bring_forward
from tests.support.service import RunningService

PATIENCE = 30
BODY: dict[str, Any] = {
    "assistant_id": "agent",
    "input": {"messages": [{"role": "user", "content": "Hello"}]},
}
COUNTING: dict[str, Any] = {"assistant": "counting", "graph_input": {"until": 1}}


def moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


async def thread_frames(client: httpx.AsyncClient, thread: str, runs: int) -> list[Frame]:
    """A thread's stream from its first run, up to the end of so many."""
    read: list[Frame] = []
    headers = {"Last-Event-ID": "-1"}
    path = f"/threads/{thread}/stream"
    async with asyncio.timeout(PATIENCE), client.stream("GET", path, headers=headers) as response:
        async for frame in follow(response):
            read.append(frame)
            if sum(each.event == "run_done" for each in read) == runs:
                return read
    raise AssertionError("the stream of a thread has no end")


def begun(frames: list[Frame]) -> list[str]:
    """The runs of a thread's stream, in its order."""
    return [frame.data["run_id"] for frame in frames if frame.event == "metadata"]


class TestARunForLater:
    async def test_says_when_it_is_due(self, idle: RunningService) -> None:
        http = idle.client("planning")
        thread = await new_thread(http)
        body = {**BODY, "after_seconds": 3690.5, "priority": -7}
        made = (await http.post(f"/threads/{thread}/runs", json=body)).json()
        assert moment(made["due_at"]) - moment(made["created_at"]) == 3690.5
        assert (made["priority"], made["status"], made["state"]) == (-7, "pending", "pending")
        found = (await http.get(f"/threads/{thread}/runs/{made['run_id']}")).json()
        assert found == made
        assert (await http.get(f"/threads/{thread}/runs")).json() == [made]
        assert (await http.get(f"/threads/{thread}")).json()["status"] == "busy"
        chosen = {"select": ["priority", "due_at"]}
        (some,) = (await http.get(f"/threads/{thread}/runs", params=chosen)).json()
        assert some == {"priority": -7, "due_at": made["due_at"]}

    async def test_is_due_at_once_unless_said_otherwise(self, idle: RunningService) -> None:
        http = idle.client("prompt")
        run = (await http.get(await start_run(http, await new_thread(http)))).json()
        assert (run["due_at"], run["priority"]) == (run["created_at"], 0)

    async def test_begins_then_and_lets_those_before_it_pass(self, narrow: RunningService) -> None:
        http = narrow.client("patient")
        thread = await new_thread(http)
        later = await start_run(http, thread, **COUNTING, after_seconds=MUCH_LATER)
        sooner = await start_run(http, thread, **COUNTING)
        assert (await read_run(http, sooner))[-1].data["status"] == "success"
        assert (await http.get(later)).json()["state"] == "pending"
        await bring_forward(narrow, later)
        due = moment((await http.get(later)).json()["due_at"])
        frames = await thread_frames(http, thread, 2)
        assert begun(frames) == [run.rpartition("/")[2] for run in (sooner, later)]
        assert time.time() >= due

    async def test_is_followed_in_its_threads_stream_once_it_is_due(
        self, narrow: RunningService
    ) -> None:
        http = narrow.client("following")
        thread = await new_thread(http)
        reading = asyncio.create_task(thread_frames(http, thread, 3))
        first = await start_run(http, thread, **COUNTING)
        later = await start_run(http, thread, **COUNTING, after_seconds=MUCH_LATER)
        second = await start_run(http, thread, **COUNTING)
        await read_run(http, second)
        await bring_forward(narrow, later)
        frames = await reading
        in_order = [run.rpartition("/")[2] for run in (first, second, later)]
        assert begun(frames) == in_order
        assert begun(await thread_frames(http, thread, 3)) == in_order
        # Who has read as far as the second goes on with the one that was accepted before it.
        done = next(
            f.raw for f in frames if f.event == "run_done" and f.data["run_id"] == in_order[1]
        )
        position = done.decode().partition("id: ")[2].strip()
        path = f"/threads/{thread}/stream"
        headers = {"Last-Event-ID": position}
        async with http.stream("GET", path, headers=headers) as response:
            assert (await anext(follow(response))).data["run_id"] == in_order[2]

    async def test_is_cancelled_and_deleted_before_it_begins(self, narrow: RunningService) -> None:
        http = narrow.client("fickle")
        thread = await new_thread(http)
        run = await start_run(http, thread, **COUNTING, after_seconds=3600)
        answer = await http.post(f"{run}/cancel")
        assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")
        assert (await read_run(http, run))[-1].data["status"] == "interrupted"
        run = await start_run(http, thread, **COUNTING, after_seconds=3600)
        assert (await http.delete(run)).status_code == 204
        assert (await http.get(run)).status_code == 404
        run = await start_run(http, thread, **COUNTING, after_seconds=3600)
        assert (await http.delete(f"/threads/{thread}")).status_code == 204
        assert (await http.get(run)).status_code == 404

    async def test_is_one_run_under_one_key(self, idle: RunningService) -> None:
        http = idle.client("certain")
        path = f"/threads/{await new_thread(http)}/runs"
        headers = {"Idempotency-Key": "one"}
        body = {**BODY, "after_seconds": MUCH_LATER}
        made = (await http.post(path, json=body, headers=headers)).json()
        again = (await http.post(path, json=body, headers=headers)).json()
        assert again == made
        other = {**BODY, "after_seconds": MUCH_LATER + 1}
        assert (await http.post(path, json=other, headers=headers)).status_code == 409

    async def test_is_in_the_way_of_one_that_wants_its_thread_alone(
        self, idle: RunningService
    ) -> None:
        http = idle.client("alone")
        thread = await new_thread(http)
        later = await start_run(http, thread, after_seconds=MUCH_LATER)
        alone = {**BODY, "multitask_strategy": "reject"}
        assert (await http.post(f"/threads/{thread}/runs", json=alone)).status_code == 409
        await start_run(http, thread, multitask_strategy="interrupt")
        assert (await http.get(later)).json()["state"] == "cancelled"


class TestAPriority:
    async def test_decides_which_of_ones_own_runs_is_next(self, narrow: RunningService) -> None:
        http = narrow.client("sorting")
        await limit(narrow, http, running=1)
        stalls = sum(each.stalled_at is not None for each in narrow.model.requests)
        narrow.model.enqueue(Script(text="one two", stall_at=1))
        holding = await start_run(http, await new_thread(http))
        await narrow.model.wait_for_stall(stalls + 1)
        runs = {
            priority: await start_run(http, await new_thread(http), **COUNTING, priority=priority)
            for priority in (-100, 0, 100)
        }
        await http.post(f"{holding}/cancel", params={"wait": 1})
        for run in runs.values():
            assert (await read_run(http, run))[-1].data["status"] == "success"
        ended = {p: moment((await http.get(run)).json()["updated_at"]) for p, run in runs.items()}
        assert sorted(ended, key=lambda priority: ended[priority]) == [100, 0, -100]
