"""Requests that are sent again with the same key are one."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from tests.support.frames import follow, logged, new_thread
from tests.support.model_server import Script
from tests.support.service import RunningService

BODY = {"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": "Hello"}]}}
OTHER = {"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": "Bye"}]}}


class TestARunThatIsAskedForAgain:
    async def test_is_the_same_run_also_by_many_at_once(self, service: RunningService) -> None:
        client = service.client("oda")
        path = f"/threads/{await new_thread(client)}/runs"
        headers = {"Idempotency-Key": "one"}
        answers = await asyncio.gather(
            *(client.post(path, json=BODY, headers=headers) for _ in range(8))
        )
        assert {each.status_code for each in answers} == {200}
        assert len({each.json()["run_id"] for each in answers}) == 1
        assert len((await client.get(path)).json()) == 1

    async def test_is_the_same_run_though_it_left_nothing_to_go_on_with(
        self, service: RunningService
    ) -> None:
        client = service.client("pru")
        thread_id = await new_thread(client)
        path = f"/threads/{thread_id}/runs"
        stalls = sum(each.stalled_at is not None for each in service.model.requests)
        service.model.enqueue(Script(text="one two", stall_at=1))
        stopped = (await client.post(path, json=BODY)).json()["run_id"]
        await service.model.wait_for_stall(stalls + 1)
        await client.post(f"{path}/{stopped}/cancel", params={"wait": 1})
        empty = {"assistant_id": "agent", "input": None}
        headers = {"Idempotency-Key": "go-on"}
        first = await client.post(path, json=empty, headers=headers)
        assert first.status_code == 200, first.text
        await client.get(f"{path}/{first.json()['run_id']}/join")
        again = await client.post(path, json=empty, headers=headers)
        assert (again.status_code, again.json()["run_id"]) == (200, first.json()["run_id"])

    async def test_with_another_body_is_refused(self, service: RunningService) -> None:
        client = service.client("pam")
        path = f"/threads/{await new_thread(client)}/runs"
        headers = {"Idempotency-Key": "one"}
        await client.post(path, json=BODY, headers=headers)
        answer = await client.post(path, json=OTHER, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_conflict")

    async def test_under_the_key_of_somebody_else_is_a_run_of_ones_own(
        self, service: RunningService
    ) -> None:
        made = []
        for person in ("quin", "rob"):
            client = service.client(person)
            path = f"/threads/{await new_thread(client)}/runs"
            answer = await client.post(path, json=BODY, headers={"Idempotency-Key": "one"})
            made.append(answer.json()["run_id"])
        assert len(set(made)) == 2

    async def test_streams_the_same_bytes(self, service: RunningService) -> None:
        client = service.client("sue")
        path = f"/threads/{await new_thread(client)}/runs/stream"
        read = []
        for _ in range(2):
            headers = {"Idempotency-Key": "one"}
            async with client.stream("POST", path, json=BODY, headers=headers) as answer:
                read.append(logged([frame async for frame in follow(answer)]))
        assert read[0] == read[1]

    async def test_whose_first_try_was_refused_may_be_tried_again(
        self, service: RunningService
    ) -> None:
        client = service.client("tom")
        path = "/threads/00000000-0000-4000-8000-000000000000/runs"
        headers = {"Idempotency-Key": "one"}
        assert (await client.post(path, json=BODY, headers=headers)).status_code == 404
        create = {**BODY, "if_not_exists": "create"}
        assert (await client.post(path, json=create, headers=headers)).status_code == 200

    async def test_is_waited_for_again(self, service: RunningService) -> None:
        client = service.client("vic")
        path = f"/threads/{await new_thread(client)}/runs"
        headers = {"Idempotency-Key": "one"}
        answers = [
            (await client.post(f"{path}/wait", json=BODY, headers=headers)).json() for _ in range(2)
        ]
        assert answers[0] == answers[1]
        assert [each["content"] for each in answers[0]["messages"]] == ["Hello", "You said: Hello"]
        assert len((await client.get(path)).json()) == 1

    async def test_after_it_was_deleted_is_not_made_again(self, service: RunningService) -> None:
        client = service.client("wes")
        path = f"/threads/{await new_thread(client)}/runs"
        headers = {"Idempotency-Key": "one"}
        made = await client.post(path, json=BODY, headers=headers)
        await client.delete(made.headers["content-location"])
        answer = await client.post(path, json=BODY, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (404, "run_not_found")

    @pytest.mark.parametrize("key", ["", "a b", "é", "x" * 256])
    async def test_under_a_key_that_is_none_is_refused(
        self, service: RunningService, key: str
    ) -> None:
        client = service.client("una")
        path = f"/threads/{await new_thread(client)}/runs"
        headers = [(b"Idempotency-Key", key.encode())]
        answer = await client.post(path, json=BODY, headers=headers)
        assert answer.status_code == 422


class TestAThreadThatIsAskedForAgain:
    @pytest.mark.parametrize("chosen", [False, True])
    async def test_is_the_same_thread_also_by_many_at_once(
        self, service: RunningService, chosen: bool
    ) -> None:
        client = service.client(f"xia-{chosen}")
        headers = {"Idempotency-Key": "one"}
        body = {"metadata": {"topic": "bees"}, **({"thread_id": str(uuid4())} if chosen else {})}
        answers = await asyncio.gather(
            *(client.post("/threads", json=body, headers=headers) for _ in range(6))
        )
        assert {each.status_code for each in answers} == {200}
        assert len({each.json()["thread_id"] for each in answers}) == 1
        assert (await client.post("/threads/count", json={})).json() == 1

    async def test_with_another_body_is_refused(self, service: RunningService) -> None:
        client = service.client("yan")
        headers = {"Idempotency-Key": "one"}
        await client.post("/threads", json={}, headers=headers)
        answer = await client.post("/threads", json={"metadata": {"a": 1}}, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_conflict")

    async def test_that_could_not_be_made_may_be_tried_again(self, service: RunningService) -> None:
        client = service.client("zoe")
        headers = {"Idempotency-Key": "one"}
        body = {"thread_id": await new_thread(client)}
        for _ in range(2):
            answer = await client.post("/threads", json=body, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (409, "thread_exists")
        await client.delete(f"/threads/{body['thread_id']}")
        assert (await client.post("/threads", json=body, headers=headers)).status_code == 200
