"""LangGraph's own Python client, unchanged, against processes of Stoa's."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, cast
from uuid import uuid4

import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import (
    AuthenticationError,
    ConflictError,
    NotFoundError,
    UnprocessableEntityError,
)
from langgraph_sdk.schema import Command, StreamMode, StreamPart

from tests.acceptance.conftest import Running
from tests.support.model_server import Script

HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello there"}]}
ANSWER = "You said: Hello there"
TOPIC: dict[str, Any] = {"topic": "bees"}
FORWARD = """
WITH run AS (
  UPDATE runs SET due_at = clock_timestamp() + interval '0.5 s' WHERE run_id = $1 RETURNING user_id
)
UPDATE run_queues SET claimable = true FROM run WHERE run_queues.user_id = run.user_id
"""


@pytest.fixture
def person() -> str:
    """Somebody who has nothing yet."""
    return uuid4().hex


@pytest.fixture
def client(running: Running, person: str) -> LangGraphClient:
    return running.deployment.sdk(person, running.first)


async def new_thread(client: LangGraphClient) -> str:
    return (await client.threads.create())["thread_id"]


async def stream(
    client: LangGraphClient,
    modes: list[StreamMode],
    *,
    assistant: str = "agent",
    graph_input: dict[str, Any] = HELLO,
    subgraphs: bool = False,
) -> list[StreamPart]:
    parts = client.runs.stream(
        await new_thread(client),
        assistant,
        input=graph_input,
        stream_mode=modes,
        stream_subgraphs=subgraphs,
    )
    return [part async for part in parts]


def names(parts: list[StreamPart]) -> list[str]:
    return [part.event for part in parts]


def of(parts: list[StreamPart], event: str) -> list[Any]:
    return [part.data for part in parts if part.event == event]


class TestStreaming:
    async def test_every_stream_begins_with_metadata_and_ends_with_the_status(
        self, client: LangGraphClient
    ) -> None:
        parts = await stream(client, ["values"])
        first, *_, last = parts
        assert first.event == "metadata"
        assert first.data["attempt"] == 1
        assert last.event == "end"
        assert last.data == {"run_id": first.data["run_id"], "status": "success"}
        assert [part.id for part in parts[:-1]] == [str(n) for n in range(1, len(parts))]

    async def test_values(self, client: LangGraphClient) -> None:
        values = of(await stream(client, ["values"]), "values")
        assert [len(each["messages"]) for each in values] == [1, 2]
        assert [each["type"] for each in values[-1]["messages"]] == ["human", "ai"]
        assert values[-1]["messages"][1]["content"] == ANSWER

    async def test_updates(self, client: LangGraphClient) -> None:
        (update,) = of(await stream(client, ["updates"]), "updates")
        assert update["model"]["messages"][0]["content"] == ANSWER

    async def test_messages_tuple(self, client: LangGraphClient) -> None:
        pairs = of(await stream(client, ["messages-tuple"]), "messages")
        assert "".join(chunk["content"] for chunk, _ in pairs) == ANSWER
        assert {chunk["type"] for chunk, _ in pairs} == {"AIMessageChunk"}
        assert len({chunk["id"] for chunk, _ in pairs}) == 1
        assert {about["langgraph_node"] for _, about in pairs} == {"model"}

    async def test_messages(self, client: LangGraphClient) -> None:
        parts = await stream(client, ["messages"])
        middle = [name for name in names(parts) if name.startswith("messages")]
        assert middle[0] == "messages/metadata"
        assert middle[-1] == "messages/complete"
        assert set(middle[1:-1]) <= {"messages/partial"}  # none, if it came in one flush
        texts = [data[0]["content"] for data in of(parts, "messages/partial")]
        assert all(later.startswith(text) for text, later in pairwise(texts))
        (complete,) = of(parts, "messages/complete")
        assert complete[0]["content"] == ANSWER

    async def test_custom(self, client: LangGraphClient) -> None:
        parts = await stream(
            client, ["custom"], assistant="nested", graph_input=TOPIC, subgraphs=True
        )
        assert [part.data for part in parts if part.event.startswith("custom")] == [
            {"doing": "outlining bees"}
        ]

    async def test_tasks(self, client: LangGraphClient) -> None:
        tasks = of(await stream(client, ["tasks"], assistant="nested", graph_input=TOPIC), "tasks")
        assert [task["name"] for task in tasks] == ["plan", "plan", "write", "write"]
        assert tasks[-1]["result"] == {"report": "report from outline of bees"}

    async def test_checkpoints(self, client: LangGraphClient) -> None:
        checkpoints = of(await stream(client, ["checkpoints"]), "checkpoints")
        assert [each["metadata"]["step"] for each in checkpoints] == [-1, 0, 1]
        assert checkpoints[-1]["values"]["messages"][1]["content"] == ANSWER
        assert checkpoints[-1]["next"] == []

    async def test_debug(self, client: LangGraphClient) -> None:
        debug = of(await stream(client, ["debug"]), "debug")
        assert {each["type"] for each in debug} == {"checkpoint", "task", "task_result"}

    async def test_several_modes_at_once(self, client: LangGraphClient) -> None:
        parts = await stream(client, ["values", "updates", "messages-tuple"])
        assert set(names(parts)) == {"metadata", "values", "updates", "messages", "end"}

    async def test_subgraphs_name_their_place(self, client: LangGraphClient) -> None:
        parts = await stream(
            client, ["updates"], assistant="nested", graph_input=TOPIC, subgraphs=True
        )
        inner = [part for part in parts if part.event.startswith("updates|")]
        assert [part.data for part in inner] == [{"outline": {"outline": "outline of bees"}}]
        assert inner[0].event.startswith("updates|plan:")
        assert of(parts, "updates")[-1] == {"write": {"report": "report from outline of bees"}}

    async def test_a_second_message_on_the_thread_knows_the_first(
        self, client: LangGraphClient
    ) -> None:
        thread_id = await new_thread(client)
        for _ in range(2):
            await client.runs.wait(thread_id, "agent", input=HELLO)
        state = await client.threads.get_state(thread_id)
        said = [each["content"] for each in cast("Any", state["values"])["messages"]]
        assert said == ["Hello there", ANSWER, "Hello there", ANSWER]


class TestWaitingAndJoining:
    async def test_wait_gives_the_final_values(self, client: LangGraphClient) -> None:
        thread_id = await new_thread(client)
        created: list[Any] = []
        values = cast(
            "dict[str, Any]",
            await client.runs.wait(thread_id, "agent", input=HELLO, on_run_created=created.append),
        )
        assert values["messages"][1]["content"] == ANSWER
        assert created[0]["thread_id"] == thread_id
        run = await client.runs.get(thread_id, created[0]["run_id"])
        assert run["status"] == "success"

    async def test_a_run_in_the_background_is_joined(self, client: LangGraphClient) -> None:
        thread_id = await new_thread(client)
        run = await client.runs.create(thread_id, "agent", input=HELLO)
        assert run["status"] == "pending"
        values = cast("dict[str, Any]", await client.runs.join(thread_id, run["run_id"]))
        assert values["messages"][1]["content"] == ANSWER

    async def test_a_stream_is_joined_in_mid_answer_and_gone_on_with(
        self, running: Running, client: LangGraphClient, person: str
    ) -> None:
        deployment = running.deployment
        stalls = deployment.stalls
        deployment.model.enqueue(Script(text="one two three four", stall_at=2))
        thread_id = await new_thread(client)
        run = await client.runs.create(
            thread_id, "agent", input=HELLO, stream_mode=["messages-tuple", "values"]
        )
        request = await deployment.model.wait_for_stall(stalls + 1)
        before: list[StreamPart] = []
        async for part in client.runs.join_stream(thread_id, run["run_id"]):
            before.append(part)
            if part.event == "messages":
                break
        deployment.model.release(request)
        elsewhere = deployment.sdk(person, running.second)
        after = [
            part
            async for part in elsewhere.runs.join_stream(
                thread_id, run["run_id"], last_event_id=before[-1].id
            )
        ]
        chunks = of(before + after, "messages")
        assert "".join(chunk["content"] for chunk, _ in chunks) == "one two three four"
        only_values = [
            part.event
            async for part in client.runs.join_stream(
                thread_id, run["run_id"], stream_mode="values"
            )
        ]
        assert set(only_values) == {"metadata", "values", "end"}

    async def test_a_failed_run_raises_when_it_is_waited_for(
        self, running: Running, client: LangGraphClient
    ) -> None:
        running.deployment.model.enqueue(Script(status=500))
        thread_id = await new_thread(client)
        with pytest.raises(Exception, match="The model failed while it was answering"):
            await client.runs.wait(thread_id, "agent", input=HELLO)
        (run,) = await client.runs.list(thread_id)
        assert run["status"] == "error"


class TestRuns:
    async def test_are_listed_by_status_newest_first(
        self, running: Running, client: LangGraphClient
    ) -> None:
        thread_id = await new_thread(client)
        first = await client.runs.create(thread_id, "agent", input=HELLO, metadata={"n": 1})
        await client.runs.join(thread_id, first["run_id"])
        running.deployment.model.enqueue(Script(status=500))
        second = await client.runs.create(thread_id, "agent", input=HELLO)
        await client.runs.join(thread_id, second["run_id"])

        runs = await client.runs.list(thread_id)
        assert [run["run_id"] for run in runs] == [second["run_id"], first["run_id"]]
        assert [run["status"] for run in runs] == ["error", "success"]
        (failed,) = await client.runs.list(thread_id, status="error")
        assert failed["run_id"] == second["run_id"]
        assert await client.runs.list(thread_id, status="pending") == []
        (page,) = await client.runs.list(thread_id, limit=1, offset=1)
        assert page["metadata"] == {"n": 1}
        selected: list[Any] = list(await client.runs.list(thread_id, limit=1, select=["status"]))
        assert selected == [{"status": "error"}]

    async def test_begin_later_if_they_are_asked_to(
        self, running: Running, client: LangGraphClient
    ) -> None:
        thread_id = await new_thread(client)
        later = cast(
            "dict[str, Any]",
            await client.runs.create(thread_id, "agent", input=HELLO, after_seconds=3600),
        )
        assert later["status"] == "pending"
        due, created = (datetime.fromisoformat(later[name]) for name in ("due_at", "created_at"))
        assert due - created == timedelta(hours=1)
        sooner = await client.runs.create(thread_id, "agent", input=HELLO)
        await client.runs.join(thread_id, sooner["run_id"])
        assert (await client.runs.get(thread_id, later["run_id"]))["status"] == "pending"
        # An hour is over but for a moment.
        async with running.deployment.superuser() as connection:
            await connection.execute(FORWARD, later["run_id"])
        await client.runs.join(thread_id, later["run_id"])
        ended = {each["run_id"]: each for each in await client.runs.list(thread_id)}
        assert {each["status"] for each in ended.values()} == {"success"}
        assert ended[sooner["run_id"]]["updated_at"] < ended[later["run_id"]]["updated_at"]

    async def test_for_later_are_cancelled(self, client: LangGraphClient) -> None:
        thread_id = await new_thread(client)
        later = await client.runs.create(thread_id, "agent", input=HELLO, after_seconds=3600)
        await client.runs.cancel(thread_id, later["run_id"])
        assert (await client.runs.get(thread_id, later["run_id"]))["status"] == "interrupted"


class TestThreads:
    async def test_live_from_creation_to_deletion(self, client: LangGraphClient) -> None:
        thread_id = str(uuid4())
        created = await client.threads.create(thread_id=thread_id, metadata={"about": "bees"})
        assert (created["thread_id"], created["status"]) == (thread_id, "idle")
        again = await client.threads.create(thread_id=thread_id, if_exists="do_nothing")
        assert again["metadata"] == {"about": "bees"}
        await client.threads.update(thread_id, metadata={"colour": "yellow"})
        thread = await client.threads.get(thread_id)
        assert thread["metadata"] == {"about": "bees", "colour": "yellow"}
        await client.runs.wait(thread_id, "agent", input=HELLO)
        await client.threads.delete(thread_id)
        with pytest.raises(NotFoundError):
            await client.threads.get(thread_id)

    async def test_are_searched_and_counted(self, client: LangGraphClient) -> None:
        ids = [
            (await client.threads.create(metadata={"parity": number % 2}))["thread_id"]
            for number in range(5)
        ]
        assert await client.threads.count() == 5
        assert await client.threads.count(metadata={"parity": 0}) == 3
        found = await client.threads.search(sort_by="created_at", sort_order="asc")
        assert [thread["thread_id"] for thread in found] == ids
        odd = await client.threads.search(
            metadata={"parity": 1}, sort_by="created_at", sort_order="asc", limit=1, offset=1
        )
        assert [thread["thread_id"] for thread in odd] == [ids[3]]
        assert len(await client.threads.search(ids=ids[:2])) == 2
        assert await client.threads.search(status="busy") == []

    async def test_have_a_state_and_a_history(self, client: LangGraphClient) -> None:
        thread_id = await new_thread(client)
        await client.runs.wait(thread_id, "agent", input=HELLO)
        state = await client.threads.get_state(thread_id)
        history = await client.threads.get_history(thread_id)
        assert history[0] == state
        assert [(each["metadata"] or {})["step"] for each in history] == [1, 0, -1]
        older = await client.threads.get_history(
            thread_id, before=cast("Any", history[0]["checkpoint"]), limit=1
        )
        assert older == history[1:2]
        named = history[1]["checkpoint"]
        at = await client.threads.get_state(thread_id, checkpoint=named)
        assert at == history[1]
        assert at["next"] == ["model"]

    async def test_show_the_state_of_a_foreign_graph(self, client: LangGraphClient) -> None:
        thread_id = await new_thread(client)
        await client.runs.wait(thread_id, "nested", input=TOPIC)
        state = await client.threads.get_state(thread_id)
        assert cast("Any", state["values"])["report"] == "report from outline of bees"


class TestErrors:
    async def test_a_thread_that_is_not_there(self, client: LangGraphClient) -> None:
        with pytest.raises(NotFoundError) as caught:
            await client.threads.get(str(uuid4()))
        assert cast("Any", caught.value.body)["code"] == "thread_not_found"

    async def test_somebody_elses_thread_is_not_there_either(
        self, running: Running, client: LangGraphClient
    ) -> None:
        thread_id = await new_thread(client)
        stranger = running.deployment.sdk("a stranger", running.first)
        with pytest.raises(NotFoundError):
            await stranger.threads.get(thread_id)
        with pytest.raises(NotFoundError):
            await stranger.runs.create(thread_id, "agent", input=HELLO)
        with pytest.raises(NotFoundError):
            await stranger.threads.get_history(thread_id)

    async def test_an_unknown_assistant(self, client: LangGraphClient) -> None:
        with pytest.raises(NotFoundError):
            await client.runs.create(await new_thread(client), "nobody", input=HELLO)

    async def test_a_thread_id_that_is_taken(self, client: LangGraphClient) -> None:
        thread_id = await new_thread(client)
        with pytest.raises(ConflictError):
            await client.threads.create(thread_id=thread_id, if_exists="raise")

    async def test_what_is_not_there_yet_is_refused_and_not_ignored(
        self, client: LangGraphClient
    ) -> None:
        thread_id = await new_thread(client)
        with pytest.raises(UnprocessableEntityError):
            await client.runs.create(
                thread_id, "agent", input=HELLO, webhook="https://example.org/done"
            )
        assert await client.runs.list(thread_id) == []

    async def test_nobody(self, running: Running) -> None:
        nobody = running.deployment.sdk("nobody", running.first)
        with pytest.raises(AuthenticationError):
            await nobody.threads.search(headers={"Authorization": "Bearer forged"})


class TestARunThatWaits:
    async def test_goes_on_with_what_the_client_answers(self, client: LangGraphClient) -> None:
        thread_id = await new_thread(client)
        question: dict[str, Any] = {"question": "May I?"}
        asked = cast("dict[str, Any]", await client.runs.wait(thread_id, "asking", input=question))
        assert [each["value"] for each in asked["__interrupt__"]] == [question]
        parts = [
            part
            async for part in client.runs.stream(thread_id, "asking", command={"resume": "yes"})
        ]
        assert parts[-2].data == {**question, "answer": "yes"}
        assert parts[-1].data["status"] == "success"
        (run,) = await client.runs.list(thread_id)
        assert run["run_id"] == parts[0].data["run_id"]

    async def test_is_answered_by_the_interrupts_id_and_waited_for(
        self, client: LangGraphClient
    ) -> None:
        thread_id = await new_thread(client)
        await client.runs.wait(thread_id, "asking", input={"question": "May I?"})
        (asked,) = (await client.threads.get_state(thread_id))["interrupts"]
        resume: Command = {"resume": {asked["id"]: {"sure": True}}}
        values = await client.runs.wait(thread_id, "asking", command=resume)
        assert cast("dict[str, Any]", values)["answer"] == "{'sure': True}"
        with pytest.raises(ConflictError):
            await client.runs.create(thread_id, "asking", command=resume)


class TestTheStore:
    async def test_keeps_finds_and_deletes_items(self, client: LangGraphClient) -> None:
        store = client.store
        await store.put_item(["notes", "travel"], key="lisbon", value={"text": "trams"}, ttl=60)
        await store.put_item(["notes"], key="porto", value={"text": "bridges", "n": 10})
        item = await store.get_item(["notes", "travel"], key="lisbon", refresh_ttl=False)
        assert (item["namespace"], item["value"]) == (["notes", "travel"], {"text": "trams"})
        by_words = await store.search_items(["notes"], query="tram", refresh_ttl=True)
        assert [each["key"] for each in by_words["items"]] == ["lisbon"]
        filtered = await store.search_items([], filter={"n": {"$gt": 9}}, limit=5, offset=0)
        assert [each["key"] for each in filtered["items"]] == ["porto"]
        listed = await store.list_namespaces(prefix=["notes"], suffix=["travel"], max_depth=2)
        assert listed["namespaces"] == [["notes", "travel"]]
        await store.delete_item(["notes"], key="porto")
        assert await store.get_item(["notes"], key="porto") is None

    async def test_refuses_what_it_does_not_do(self, client: LangGraphClient) -> None:
        with pytest.raises(UnprocessableEntityError):
            await client.store.put_item(["notes"], key="a", value={"a": "b"}, index=False)
        with pytest.raises(UnprocessableEntityError):
            await client.store.put_item(["memories"], key="a", value={"a": "b"})
