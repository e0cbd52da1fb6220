"""What becomes of a run, its thread and its stream when it is stopped, or used up what it may."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import httpx
import pytest

from app.runs.cancelling import CancelAction, cancel_runs
from app.runs.tail import run_key
from app.worker import attempt, follow_stop
from tenancy.principal import ClaimedRun, UserId
from tests.support.deployment import GRAPHS
from tests.support.frames import Frame, new_thread, read_run, start_run
from tests.support.model_server import Script
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service

STEPS = 6


@pytest.fixture(scope="module")
async def service(postgres: PostgresServer) -> AsyncIterator[RunningService]:
    """A service with graphs of the operator's, few steps per run and quick heartbeats."""
    async with running_service(
        postgres, graphs=GRAPHS, recursion_limit=STEPS, heartbeat_seconds=0.5
    ) as running:
        yield running


async def stop(
    service: RunningService,
    client: httpx.AsyncClient,
    location: str,
    action: CancelAction = "interrupt",
) -> None:
    """What the API does for a person who presses Stop."""
    user = UserId(UUID((await client.get("/me")).json()["user_id"]))
    run_id = UUID(location.rpartition("/")[2])
    services = service.web.services
    owner = ClaimedRun(user, run_id, 0)
    await cancel_runs(services.database, owner, run_ids=[run_id], action=action)
    services.announcer.run_stopped(run_key(user, run_id))
    services.announcer.run_changed(run_key(user, run_id))


async def state_of(client: httpx.AsyncClient, thread_id: str) -> Any:
    return (await client.get(f"/threads/{thread_id}/state")).json()


def said(state: Any) -> list[tuple[str, str]]:
    return [(each["type"], each["content"]) for each in state["values"]["messages"]]


def ended_as(frames: list[Frame]) -> str:
    assert frames[-1].event == "end"
    return str(frames[-1].data["status"])


class TestAGraphThatDoesNotHeedAStop:
    async def test_loses_its_model_call_and_keeps_what_it_had_said(
        self, service: RunningService
    ) -> None:
        client = service.client("fay")
        thread_id = await new_thread(client)
        gone = sum(each.disconnected_at is not None for each in service.model.requests)
        service.model.enqueue(Script(text="one two three four", stall_at=2))
        location = await start_run(
            client,
            thread_id,
            assistant="foreign",
            config={"configurable": {"model_url": service.model.url}},
        )
        await streamed(client, location, " two")
        await stop(service, client, location)
        frames = await read_run(client, location)
        assert ended_as(frames) == "interrupted"
        assert [f.data for f in frames if f.event == "stopping"] == [{"tools": []}]
        await service.model.wait_for_disconnect(1 + gone)
        state = await state_of(client, thread_id)
        assert said(state) == [("human", "Hello"), ("ai", "one two")]
        last = state["values"]["messages"][-1]
        assert last["response_metadata"]["stoa_incomplete"] == "stopped"
        run = (await client.get(location)).json()
        assert (run["state"], run["error"]) == ("cancelled", None)

    async def test_leaves_no_open_tool_call_behind(self, service: RunningService) -> None:
        client = service.client("gus")
        thread_id = await new_thread(client)
        location = await start_run(client, thread_id, "use the tool", assistant="foreign")
        await streamed(client, location, "call-1")
        await stop(service, client, location)
        assert ended_as(await read_run(client, location)) == "interrupted"
        *_, call, result = (await state_of(client, thread_id))["values"]["messages"]
        assert call["tool_calls"][0]["id"] == result["tool_call_id"] == "call-1"
        assert result["status"] == "error"

    async def test_leaves_none_to_the_next_model_call_though_it_was_deleted(
        self, service: RunningService
    ) -> None:
        client = service.client("gwen")
        thread_id = await new_thread(client)
        location = await start_run(client, thread_id, "use the tool", assistant="foreign")
        async with asyncio.timeout(30):
            while True:
                if (await state_of(client, thread_id))["next"] == ["tools"]:
                    break
                await asyncio.sleep(0.02)
        await client.delete(location)
        calls = len(service.model.requests)
        second = await start_run(
            client,
            thread_id,
            "never mind",
            assistant="foreign",
            config={"configurable": {"model_url": service.model.url}},
        )
        assert ended_as(await read_run(client, second)) == "success"
        asked: Any = service.model.requests[calls].body["messages"]
        assert [each["role"] for each in asked] == ["user", "assistant", "tool", "user"]

    async def test_is_left_to_itself_if_it_takes_no_notice_at_all(
        self, service: RunningService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(follow_stop, "STOP_SECONDS", 0.05)
        monkeypatch.setattr(attempt, "STOP_SECONDS", 0.05)
        client = service.client("guy")
        thread_id = await new_thread(client)
        asked: dict[str, Any] = {"assistant": "deaf", "graph_input": {"begun": False}}
        location = await start_run(client, thread_id, modes=("values",), **asked)
        await streamed(client, location, "true")
        await stop(service, client, location)
        assert ended_as(await read_run(client, location)) == "interrupted"
        assert (await client.get(location)).json()["state"] == "cancelled"
        run_id = location.rpartition("/")[2]
        left = [task for task in asyncio.all_tasks() if task.get_name() == f"run {run_id}"]
        sys.modules["stoa_graph_deaf"].enough.set()
        await asyncio.wait(left)

    async def test_is_ended_when_its_time_is_over(self, postgres: PostgresServer) -> None:
        async with running_service(postgres, graphs=GRAPHS, run_seconds=0.5) as short:
            client = short.client("hal")
            thread_id = await new_thread(client)
            location = await start_run(client, thread_id, "use the tool", assistant="foreign")
            frames = await read_run(client, location)
            assert ended_as(frames) == "timeout"
            run = (await client.get(location)).json()
            assert (run["state"], run["error"]["code"]) == ("timeout", "run_timeout")
            assert (await client.get(f"/threads/{thread_id}")).json()["status"] == "error"


async def streamed(client: httpx.AsyncClient, location: str, text: str) -> None:
    """Return once the run has streamed this."""
    async with client.stream("GET", f"{location}/stream") as response:
        async for line in response.aiter_lines():
            if text in line:
                return


class TestARollback:
    async def test_leaves_the_thread_as_it_was(self, service: RunningService) -> None:
        client = service.client("ivy")
        thread_id = await new_thread(client)
        await read_run(client, await start_run(client, thread_id, "first"))
        before = await state_of(client, thread_id)
        service.model.enqueue(Script(text="one two three four", stall_at=2))
        location = await start_run(client, thread_id, "second")
        await streamed(client, location, " two")
        await stop(service, client, location, "rollback")
        assert ended_as(await read_run(client, location)) == "interrupted"
        assert await state_of(client, thread_id) == before
        await read_run(client, await start_run(client, thread_id, "third"))
        assert [text for kind, text in said(await state_of(client, thread_id))] == [
            "first",
            "You said: first",
            "third",
            "You said: third",
        ]


class TestTheStepsOfARun:
    async def test_end_at_the_limit_exactly_and_go_on_with_an_empty_run(
        self, service: RunningService
    ) -> None:
        client = service.client("jon")
        thread_id = await new_thread(client)
        for round_ in (1, 2):
            graph_input = {"until": 100} if round_ == 1 else None
            answer = await client.post(
                f"/threads/{thread_id}/runs",
                json={"assistant_id": "counting", "input": graph_input},
            )
            assert answer.status_code == 200, answer.text
            location = answer.headers["content-location"]
            frames = await read_run(client, location)
            assert ended_as(frames) == "error"
            assert frames[-2].data["error"] == "recursion_limit"
            state = await state_of(client, thread_id)
            assert state["values"]["n"] == round_ * STEPS
            assert state["next"] == ["step"]

    @pytest.mark.parametrize(("until", "status"), [(STEPS, "success"), (STEPS + 1, "error")])
    async def test_suffice_for_a_graph_that_ends_with_the_last_of_them(
        self, service: RunningService, until: int, status: str
    ) -> None:
        client = service.client("kim")
        location = await start_run(
            client, await new_thread(client), assistant="counting", graph_input={"until": until}
        )
        assert ended_as(await read_run(client, location)) == status


class TestARunThatStopsToAsk:
    async def test_waits_until_it_is_cancelled_or_written_over(
        self, service: RunningService
    ) -> None:
        client = service.client("lea")
        thread_id = await new_thread(client)
        asked: dict[str, Any] = {"assistant": "asking", "graph_input": {"question": "May I?"}}
        first = await start_run(client, thread_id, **asked)
        frames = await read_run(client, first)
        assert ended_as(frames) == "interrupted"
        (interrupt,) = [f for f in frames if f.event == "values"][-1].data["__interrupt__"]
        assert interrupt["value"] == {"question": "May I?"}
        assert (await client.get(first)).json()["state"] == "waiting"
        assert (await client.get(f"/threads/{thread_id}")).json()["status"] == "interrupted"
        second = await start_run(client, thread_id, **asked)
        assert (await client.get(first)).json()["state"] == "cancelled"
        await read_run(client, second)
        await stop(service, client, second)
        assert (await client.get(second)).json()["state"] == "cancelled"
        assert (await client.get(f"/threads/{thread_id}")).json()["status"] == "idle"
