"""Stopping runs over HTTP: what is answered, and what holds from then on."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.frames import follow, new_thread, read_run, start_run
from tests.support.model_server import Script
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service

HALF = Script(text="one two three four", stall_at=2)
PATIENCE = 30


async def answering(service: RunningService, client: httpx.AsyncClient, **fields: Any) -> str:
    """A run whose answer has begun and does not go on; returns where it is."""
    service.model.enqueue(HALF)
    location = await start_run(client, await new_thread(client), **fields)
    async with client.stream("GET", f"{location}/stream") as response:
        async for line in response.aiter_lines():
            if " two" in line:
                return location
    raise AssertionError


class TestARunThatIsAnswering:
    async def test_is_stopping_first_and_then_cancelled_with_its_half_answer_kept(
        self, service: RunningService
    ) -> None:
        client = service.client("ann")
        location = await answering(service, client)
        answer = await client.post(f"{location}/cancel")
        assert answer.status_code in (200, 202)
        assert answer.json()["cancel_requested_at"] is not None
        frames = await read_run(client, location)
        assert frames[-1].data["status"] == "interrupted"
        run = (await client.get(location)).json()
        assert (run["state"], run["status"], run["error"]) == ("cancelled", "interrupted", None)
        thread_id = run["thread_id"]
        state = (await client.get(f"/threads/{thread_id}/state")).json()
        *_, last = state["values"]["messages"]
        assert (last["content"], last["response_metadata"]["stoa_incomplete"]) == (
            "one two",
            "stopped",
        )
        assert state["next"] == ["model"]

    async def test_is_answered_when_it_has_ended_if_that_is_asked_for(
        self, service: RunningService
    ) -> None:
        client = service.client("ben")
        location = await answering(service, client)
        answer = await client.post(f"{location}/cancel", params={"wait": 1})
        assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")

    async def test_is_taken_back_by_a_rollback(self, service: RunningService) -> None:
        client = service.client("cat")
        location = await answering(service, client)
        answer = await client.post(
            f"{location}/cancel", params={"wait": "true", "action": "rollback"}
        )
        assert answer.json()["state"] == "cancelled"
        thread_id = answer.json()["thread_id"]
        assert (await client.get(f"/threads/{thread_id}")).json()["values"] is None

    async def test_goes_on_with_an_empty_run(self, service: RunningService) -> None:
        client = service.client("dan")
        location = await answering(service, client)
        run = (await client.post(f"{location}/cancel", params={"wait": 1})).json()
        service.model.enqueue(Script(text=" three four"))
        answer = await client.post(
            f"/threads/{run['thread_id']}/runs/wait", json={"assistant_id": "agent", "input": None}
        )
        said = [each["content"] for each in answer.json()["messages"]]
        assert said == ["Hello", "one two", " three four"]

    @pytest.mark.parametrize("route", ["stream", "wait"])
    async def test_ends_with_its_client_if_that_was_asked_for(
        self, service: RunningService, route: str
    ) -> None:
        client = service.client(f"eve-{route}")
        service.model.enqueue(HALF)
        gone = sum(each.disconnected_at is not None for each in service.model.requests)
        stalls = sum(each.stalled_at is not None for each in service.model.requests)
        thread_id = await new_thread(client)
        body = {
            "assistant_id": "agent",
            "input": {"messages": [{"role": "user", "content": "Hello"}]},
            "on_disconnect": "cancel",
        }
        async with client.stream("POST", f"/threads/{thread_id}/runs/{route}", json=body) as answer:
            location = answer.headers["content-location"]
            await service.model.wait_for_stall(1 + stalls)
        await service.model.wait_for_disconnect(1 + gone)
        assert (await read_run(client, location))[-1].data["status"] == "interrupted"

    async def test_outlives_its_client_otherwise(self, service: RunningService) -> None:
        client = service.client("fox")
        location = await answering(service, client)
        async with client.stream("GET", f"{location}/stream") as answer:
            async for _ in follow(answer):
                break
        run = (await client.get(location)).json()
        assert (run["state"], run["cancel_requested_at"]) == ("running", None)
        await client.post(f"{location}/cancel", params={"wait": 1})

    async def test_can_be_stopped_though_no_stream_is_left_to_wait_with(
        self, postgres: PostgresServer
    ) -> None:
        async with running_service(postgres, max_streams_per_user=1) as narrow:
            client = narrow.client("gem")
            location = await answering(narrow, client)
            async with asyncio.timeout(PATIENCE):
                while narrow.web.services.streams.count():  # noqa: ASYNC110 - nothing tells
                    await asyncio.sleep(0.01)
            async with client.stream("GET", f"{location}/stream") as only:
                answer = await client.post(f"{location}/cancel", params={"wait": 1})
                assert answer.status_code in (200, 202)
                frames = [frame async for frame in follow(only)]
            assert frames[-1].data["status"] == "interrupted"

    async def test_is_not_stopped_by_a_page_of_another_site_that_reads_it(
        self, service: RunningService
    ) -> None:
        client = service.client("hue")
        location = await answering(service, client)
        params, headers = {"cancel_on_disconnect": "true"}, {"Sec-Fetch-Site": "cross-site"}
        answer = await client.get(f"{location}/stream", params=params, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "foreign_origin")
        await client.post(f"{location}/cancel", params={"wait": 1})

    async def test_that_is_deleted_while_its_end_is_waited_for_is_told_as_gone(
        self, service: RunningService
    ) -> None:
        client = service.client("ike")
        location = await answering(service, client)
        async with client.stream("GET", f"{location}/join") as waiting:
            await client.delete(location)
            answer = json.loads(await waiting.aread())
        assert answer["__error__"]["error"] == "run_not_found"


class TestARunThatHasEnded:
    async def test_stays_as_it_is_and_the_cancel_answers_that(
        self, service: RunningService
    ) -> None:
        client = service.client("gil")
        location = await start_run(client, await new_thread(client))
        await read_run(client, location)
        for _ in range(2):
            answer = await client.post(f"{location}/cancel", params={"wait": 1})
            assert (answer.status_code, answer.json()["state"]) == (200, "success")
            assert answer.json()["cancel_requested_at"] is None


class TestARunThatWaitsItsTurn:
    async def test_is_cancelled_on_the_spot(self, postgres: PostgresServer) -> None:
        async with running_service(postgres, worker=False) as idle:
            client = idle.client("hal")
            location = await start_run(client, await new_thread(client))
            answer = await client.post(f"{location}/cancel")
            assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")
            frames = await read_run(client, location)
            assert [frame.event for frame in frames] == ["end"]

    async def test_is_among_the_many_that_are_cancelled_at_once(
        self, postgres: PostgresServer
    ) -> None:
        async with running_service(postgres, worker=False) as idle:
            client, other = idle.client("ida"), idle.client("jim")
            mine = [await start_run(client, await new_thread(client)) for _ in range(3)]
            theirs = await start_run(other, await new_thread(other))
            ids = [location.rpartition("/")[2] for location in mine]
            stranger = theirs.rpartition("/")[2]
            body: dict[str, Any] = {"run_ids": [ids[0], stranger, str(uuid4())]}
            assert (await client.post("/runs/cancel", json=body)).status_code == 204
            states = [(await client.get(each)).json()["state"] for each in mine]
            assert states == ["cancelled", "pending", "pending"]
            body = {"status": "running"}
            assert (await client.post("/runs/cancel", json=body)).status_code == 204
            assert (await client.get(mine[1])).json()["state"] == "pending"
            body = {"status": "all"}
            assert (await client.post("/runs/cancel", json=body)).status_code == 204
            states = [(await client.get(each)).json()["state"] for each in mine]
            assert states == ["cancelled"] * 3
            assert (await other.get(theirs)).json()["state"] == "pending"

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            ("/runs/cancel", {}),
            ("/runs/cancel", {"status": "success"}),
            ("/runs/cancel", {"run_ids": []}),
            ("/runs/cancel", {"status": "all", "everything": True}),
            ("/runs/cancel?action=delete", {"status": "all"}),
            ("/runs/cancel?wait=1", {"status": "all"}),
        ],
    )
    async def test_is_not_cancelled_by_what_says_nothing_sensible(
        self, service: RunningService, path: str, body: dict[str, Any]
    ) -> None:
        client = service.client("kay")
        assert (await client.post(path, json=body)).status_code == 422


class TestAMessageWhileAnotherIsAnswered:
    async def test_is_refused_with_reject(self, service: RunningService) -> None:
        client = service.client("lea")
        location = await answering(service, client)
        thread_id = (await client.get(location)).json()["thread_id"]
        said = {"messages": [{"role": "user", "content": "again"}]}
        body = {"assistant_id": "agent", "input": said, "multitask_strategy": "reject"}
        answers = await asyncio.gather(
            *(client.post(f"/threads/{thread_id}/runs", json=body) for _ in range(3))
        )
        assert [(each.status_code, each.json()["code"]) for each in answers] == [
            (409, "thread_busy")
        ] * 3
        await client.post(f"{location}/cancel", params={"wait": 1})

    @pytest.mark.parametrize(
        ("strategy", "before"), [("interrupt", ["Hello", "one two"]), ("rollback", [])]
    )
    async def test_takes_its_place_with_interrupt_and_rollback(
        self, service: RunningService, strategy: str, before: list[str]
    ) -> None:
        client = service.client(f"mia-{strategy}")
        location = await answering(service, client)
        thread_id = (await client.get(location)).json()["thread_id"]
        queued = await start_run(client, thread_id, "queued")
        second = await start_run(client, thread_id, "again", multitask_strategy=strategy)
        await read_run(client, second)
        states = [(await client.get(each)).json()["state"] for each in (location, queued, second)]
        assert states == ["cancelled", "cancelled", "success"]
        state = (await client.get(f"/threads/{thread_id}/state")).json()
        said = [each["content"] for each in state["values"]["messages"]]
        assert said == [*before, "again", "You said: again"]


class TestAnEmptyRun:
    async def test_on_a_thread_with_nothing_left_is_refused(self, service: RunningService) -> None:
        client = service.client("ned")
        thread_id = await new_thread(client)
        body = {"assistant_id": "agent", "input": None}
        for _ in range(2):
            answer = await client.post(f"/threads/{thread_id}/runs", json=body)
            assert (answer.status_code, answer.json()["code"]) == (422, "nothing_to_continue")
            await read_run(client, await start_run(client, thread_id))

    async def test_behind_one_that_is_taken_back_has_nothing_to_do_and_says_so(
        self, service: RunningService
    ) -> None:
        client = service.client("pia")
        location = await answering(service, client)
        thread_id = (await client.get(location)).json()["thread_id"]
        body = {"assistant_id": "agent", "input": None}
        answer = await client.post(f"/threads/{thread_id}/runs", json=body)
        await client.post(f"{location}/cancel", params={"action": "rollback"})
        frames = await read_run(client, answer.headers["content-location"])
        assert frames[-2].data["error"] == "nothing_to_continue"


class TestARunFromACheckpointThatWasTakenBack:
    async def test_fails_and_leaves_the_conversation_as_it_was(
        self, service: RunningService
    ) -> None:
        client = service.client("quo")
        thread_id = await new_thread(client)
        await read_run(client, await start_run(client, thread_id, "First"))
        service.model.enqueue(HALF)
        location = await start_run(client, thread_id, "Second")
        async with client.stream("GET", f"{location}/stream") as response:
            async for line in response.aiter_lines():
                if " two" in line:
                    break
        state = (await client.get(f"/threads/{thread_id}/state")).json()
        chosen = state["checkpoint"]["checkpoint_id"]
        queued = await start_run(client, thread_id, "Third", checkpoint_id=chosen)
        await client.post(f"{location}/cancel", params={"action": "rollback"})
        frames = await read_run(client, queued)
        assert frames[-2].data["error"] == "checkpoint_not_found"
        state = (await client.get(f"/threads/{thread_id}/state")).json()
        assert [each["content"] for each in state["values"]["messages"]] == [
            "First",
            "You said: First",
        ]
