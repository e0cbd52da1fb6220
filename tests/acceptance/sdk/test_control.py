"""LangGraph's own Python client, unchanged: stopping runs, going on, changing states by hand."""

from __future__ import annotations

from typing import Any, cast
from uuid import uuid4

import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import ConflictError, NotFoundError, UnprocessableEntityError

from tests.acceptance.conftest import Running
from tests.support.model_server import Script

HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello there"}]}
HALF = Script(text="one two three four", stall_at=2)


@pytest.fixture
def client(running: Running) -> LangGraphClient:
    """The client of somebody who has nothing yet."""
    return running.deployment.sdk(uuid4().hex, running.first)


async def new_thread(client: LangGraphClient) -> str:
    return (await client.threads.create())["thread_id"]


async def answering(running: Running, client: LangGraphClient, thread_id: str) -> str:
    """A run whose answer has begun and does not go on."""
    running.deployment.model.enqueue(HALF)
    run = await client.runs.create(
        thread_id, "agent", input=HELLO, stream_mode=["messages-tuple", "values"]
    )
    async for part in client.runs.join_stream(thread_id, run["run_id"]):
        if part.event == "messages" and " two" in cast("Any", part.data)[0]["content"]:
            break
    return run["run_id"]


async def said(client: LangGraphClient, thread_id: str) -> list[str]:
    state = await client.threads.get_state(thread_id)
    return [each["content"] for each in cast("Any", state["values"])["messages"]]


class TestCancelling:
    async def test_a_running_one_and_going_on_afterwards(
        self, running: Running, client: LangGraphClient
    ) -> None:
        thread_id = await new_thread(client)
        run_id = await answering(running, client, thread_id)
        await client.runs.cancel(thread_id, run_id)
        await client.runs.join(thread_id, run_id)
        run = await client.runs.get(thread_id, run_id)
        assert run["status"] == "interrupted"
        assert await said(client, thread_id) == ["Hello there", "one two"]
        running.deployment.model.enqueue(Script(text=" three four"))
        await client.runs.wait(thread_id, "agent", input=None)
        assert await said(client, thread_id) == ["Hello there", "one two", " three four"]

    async def test_and_waiting_until_it_has_ended(
        self, running: Running, client: LangGraphClient
    ) -> None:
        thread_id = await new_thread(client)
        run_id = await answering(running, client, thread_id)
        await client.runs.cancel(thread_id, run_id, wait=True, action="rollback")
        assert (await client.runs.get(thread_id, run_id))["status"] == "interrupted"
        assert not (await client.threads.get_state(thread_id))["values"]

    async def test_many_at_once(self, running: Running, client: LangGraphClient) -> None:
        threads = [await new_thread(client) for _ in range(2)]
        ids = [await answering(running, client, thread) for thread in threads]
        await client.runs.cancel_many(thread_id=threads[0], run_ids=[ids[0]])
        await client.runs.join(threads[0], ids[0])
        assert (await client.runs.get(threads[1], ids[1]))["status"] == "running"
        await client.runs.cancel_many(status="all")
        await client.runs.join(threads[1], ids[1])
        assert (await client.runs.get(threads[1], ids[1]))["status"] == "interrupted"

    async def test_when_its_client_leaves_a_stream_it_joined(
        self, running: Running, client: LangGraphClient
    ) -> None:
        thread_id = await new_thread(client)
        run_id = await answering(running, client, thread_id)
        parts = client.runs.join_stream(thread_id, run_id, cancel_on_disconnect=True)
        async for _ in parts:
            break
        await cast("Any", parts).aclose()
        await client.runs.join(thread_id, run_id)
        assert (await client.runs.get(thread_id, run_id))["status"] == "interrupted"

    async def test_somebody_elses_finds_nothing(
        self, running: Running, client: LangGraphClient
    ) -> None:
        thread_id = await new_thread(client)
        run_id = await answering(running, client, thread_id)
        stranger = running.deployment.sdk("a stranger", running.first)
        with pytest.raises(NotFoundError):
            await stranger.runs.cancel(thread_id, run_id)
        await stranger.runs.cancel_many(thread_id=thread_id, run_ids=[run_id])
        await stranger.runs.cancel_many(status="all")
        assert (await client.runs.get(thread_id, run_id))["status"] == "running"
        await client.runs.cancel(thread_id, run_id, wait=True)


class TestDeleting:
    async def test_a_run_leaves_the_conversation(self, client: LangGraphClient) -> None:
        thread_id = await new_thread(client)
        run = await client.runs.create(thread_id, "agent", input=HELLO)
        await client.runs.join(thread_id, run["run_id"])
        await client.runs.delete(thread_id, run["run_id"])
        assert await client.runs.list(thread_id) == []
        assert len(await said(client, thread_id)) == 2


class TestChangingAState:
    async def test_names_the_checkpoint_that_it_made(self, client: LangGraphClient) -> None:
        thread_id = await new_thread(client)
        await client.runs.wait(thread_id, "agent", input=HELLO)
        before = await client.threads.get_state(thread_id)
        changed = await client.threads.update_state(
            thread_id,
            {"messages": [{"role": "user", "content": "by hand"}]},
            as_node="model",
            checkpoint=before["checkpoint"],
        )
        state = await client.threads.get_state(thread_id)
        made = cast("Any", changed["checkpoint"])
        assert made["checkpoint_id"] == state["checkpoint"]["checkpoint_id"]
        assert (await said(client, thread_id))[-1] == "by hand"
        again = await client.threads.get_state(thread_id, checkpoint=made)
        assert again["values"] == state["values"]

    async def test_is_refused_while_a_run_holds_the_thread(
        self, running: Running, client: LangGraphClient
    ) -> None:
        thread_id = await new_thread(client)
        run_id = await answering(running, client, thread_id)
        with pytest.raises(ConflictError):
            await client.threads.update_state(thread_id, HELLO)
        await client.runs.cancel(thread_id, run_id, wait=True)
        with pytest.raises(UnprocessableEntityError):
            await client.threads.update_state(thread_id, HELLO, as_node="nobody")


class TestWritingTwice:
    @pytest.mark.parametrize("strategy", ["interrupt", "rollback", "reject"])
    async def test_does_what_was_asked_for(
        self, running: Running, client: LangGraphClient, strategy: Any
    ) -> None:
        thread_id = await new_thread(client)
        run_id = await answering(running, client, thread_id)
        again: dict[str, Any] = {"messages": [{"role": "user", "content": "again"}]}
        if strategy == "reject":
            with pytest.raises(ConflictError):
                await client.runs.create(
                    thread_id, "agent", input=again, multitask_strategy=strategy
                )
            await client.runs.cancel(thread_id, run_id, wait=True)
            return
        await client.runs.wait(thread_id, "agent", input=again, multitask_strategy=strategy)
        assert (await client.runs.get(thread_id, run_id))["status"] == "interrupted"
        kept = ["Hello there", "one two"] if strategy == "interrupt" else []
        assert await said(client, thread_id) == [*kept, "again", "You said: again"]

    async def test_with_one_key_is_writing_once(self, client: LangGraphClient) -> None:
        thread_id = await new_thread(client)
        headers = {"Idempotency-Key": "one"}
        runs = [
            await client.runs.create(thread_id, "agent", input=HELLO, headers=headers)
            for _ in range(2)
        ]
        assert runs[0]["run_id"] == runs[1]["run_id"]
        await client.runs.join(thread_id, runs[0]["run_id"])
