"""Answering what a run waits for: it goes on, once, and nobody else's answer counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import asyncpg
import httpx
import pytest

from tests.integration.api import questioning
from tests.integration.api.questioning import Waiting, status_of, waiting
from tests.support.frames import Frame, follow, logged, new_thread, read_run, start_run
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service

AT_ONCE = 50


@pytest.fixture(scope="module")
async def service(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningService]:
    graphs = questioning.declare(tmp_path_factory.mktemp("graphs"))
    async with running_service(
        postgres, graphs=graphs, requests_per_minute=1_000_000, max_message_bytes=1000
    ) as running:
        yield running


@pytest.fixture
def client(service: RunningService) -> httpx.AsyncClient:
    return service.client(uuid4().hex)


@pytest.fixture
async def superuser(service: RunningService) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(service.postgres.dsn("owner", service.database))
    try:
        yield connection
    finally:
        await connection.close()


@pytest.fixture(scope="module")
async def asked_once(service: RunningService) -> Waiting:
    """A run that waits, whatever it is told."""
    return await waiting(service.client("patient"))


def refusal(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


class TestAnAnswer:
    @pytest.mark.parametrize("given", [None, {}], ids=["no input", "an empty one"])
    async def test_lets_the_run_that_waits_go_on(
        self, client: httpx.AsyncClient, given: dict[str, Any] | None
    ) -> None:
        asked = await waiting(client)
        (interrupt_id,) = await asked.questions()
        answer = await asked.answer({interrupt_id: "Ada"}, input=given)
        assert answer.status_code == 200, answer.text
        assert answer.json()["run_id"] == asked.run_id
        assert answer.json()["state"] == "pending"
        assert status_of(await read_run(client, asked.location)) == "success"
        assert await asked.told() == ["name? Ada"]
        assert len((await client.get(f"{asked.thread}/runs")).json()) == 1

    @pytest.mark.parametrize("bare", ["yes", 0, False, "", [], {}, {"a": {"b": [1, None]}}])
    async def test_without_an_id_is_for_the_only_question(
        self, client: httpx.AsyncClient, bare: Any
    ) -> None:
        asked = await waiting(client)
        assert status_of(await asked.answer_and_read(bare)) == "success"
        assert await asked.told() == [f"name? {bare}"]

    async def test_is_streamed_from_where_the_run_had_stopped(
        self, client: httpx.AsyncClient
    ) -> None:
        asked = await waiting(client)
        rest = await asked.answer_and_read("Ada", stream_mode=["values", "messages-tuple"])
        assert (rest[0].event, rest[0].data["attempt"]) == ("metadata", 2)
        whole = await read_run(client, asked.location)
        assert [frame.id for frame in whole[:-1]] == list(range(1, len(whole)))
        assert logged(whole) == logged(asked.log) + logged(rest)
        after = await read_run(client, asked.location, after=asked.log[-2].id)
        assert logged(after) == logged(rest)

    async def test_goes_on_in_the_threads_stream_too(self, client: httpx.AsyncClient) -> None:
        asked = await waiting(client)
        told: list[Frame] = []
        headers = {"Last-Event-ID": "-1"}
        async with client.stream("GET", f"{asked.thread}/stream", headers=headers) as response:
            async for frame in follow(response):
                told.append(frame)
                if frame.event == "run_done" and frame.data["status"] == "interrupted":
                    assert (await asked.answer("Ada")).status_code == 200
                elif frame.event == "run_done":
                    break
        events = [frame.event for frame in told]
        whole = [frame.event for frame in await read_run(client, asked.location)]
        assert [event for event in events if event != "run_done"] == whole[:-1]
        assert events.count("run_done") == 2
        assert told[-1].data["status"] == "success"

    async def test_is_waited_for_from_there_too(self, client: httpx.AsyncClient) -> None:
        asked = await waiting(client, "later")
        body = {"assistant_id": "later", "command": {"resume": "Ada"}}
        path = f"{asked.thread}/runs/wait"
        values = (await client.post(path, json=body)).json()
        assert values["told"] == ["name? Ada", "between"]
        assert [each["value"] for each in values["__interrupt__"]] == ["name?"]
        values = (await client.post(path, json=body)).json()
        assert values == {"told": ["name? Ada", "between", "name? Ada"]}

    async def test_may_be_asked_for_again_later_in_the_same_run(
        self, client: httpx.AsyncClient
    ) -> None:
        asked = await waiting(client, "twice")
        (first,) = await asked.questions()
        assert status_of(await asked.answer_and_read({first: "one"})) == "interrupted"
        (second,) = await asked.questions()
        assert second != first
        assert refusal(await asked.answer({first: "one"})) == (409, "nothing_waits")
        assert status_of(await asked.answer_and_read({second: "two"})) == "success"
        assert await asked.told() == ["first? one", "second? two"]
        assert (await asked.run())["attempt"] == 3

    async def test_to_one_of_several_leaves_the_others_open(
        self, client: httpx.AsyncClient
    ) -> None:
        asked = await waiting(client, "beside")
        ids = {question: id_ for id_, question in (await asked.questions()).items()}
        assert refusal(await asked.answer("which?")) == (422, "ambiguous_answer")
        frames = await asked.answer_and_read({ids["right?"]: "r"})
        assert status_of(frames) == "interrupted"
        assert await asked.questions() == {ids["left?"]: "left?"}
        assert status_of(await asked.answer_and_read({ids["left?"]: "l"})) == "success"
        assert sorted(await asked.told()) == ["left? l", "right? r"]

    async def test_to_all_of_several_at_once(self, client: httpx.AsyncClient) -> None:
        asked = await waiting(client, "beside")
        every = {id_: question[0] for id_, question in (await asked.questions()).items()}
        assert status_of(await asked.answer_and_read(every)) == "success"
        assert sorted(await asked.told()) == ["left? l", "right? r"]

    async def test_reaches_a_graph_inside_the_graph(self, client: httpx.AsyncClient) -> None:
        asked = await waiting(client, "nested")
        for answer in ("one", "two"):
            (interrupt_id,) = await asked.questions()
            await asked.answer_and_read({interrupt_id: answer})
        assert await asked.told() == ["first? one", "second? two"]

    async def test_has_what_it_asks_for_streamed_beside_what_the_run_was_made_with(
        self, client: httpx.AsyncClient
    ) -> None:
        asked = await waiting(client, modes=("values",))
        frames = await asked.answer_and_read("Ada", stream_mode="updates")
        assert [frame.event for frame in frames] == ["metadata", "updates", "end"]
        whole = await read_run(client, asked.location)
        assert {"values", "updates"} <= {frame.event for frame in whole}

    async def test_is_not_given_what_is_streamed_inside_unless_it_asks(
        self, client: httpx.AsyncClient
    ) -> None:
        asked = await waiting(client, "nested", modes=("values",), stream_subgraphs=True)
        for inside, answer in ((False, "one"), (True, "two")):
            frames = await asked.answer_and_read(answer, stream_subgraphs=inside)
            assert any("|" in frame.event for frame in frames) == inside

    async def test_counts_once_of_many_at_once(self, client: httpx.AsyncClient) -> None:
        asked = await waiting(client, "twice")
        (first,) = await asked.questions()
        answers = await asyncio.gather(*(asked.answer({first: str(n)}) for n in range(AT_ONCE)))
        won = [n for n, answer in enumerate(answers) if answer.status_code == 200]
        assert len(won) == 1
        lost = {refusal(answer) for n, answer in enumerate(answers) if n not in won}
        assert lost == {(409, "nothing_waits")}
        await read_run(client, asked.location)
        (second,) = await asked.questions()
        await asked.answer_and_read({second: "two"})
        assert await asked.told() == [f"first? {won[0]}", "second? two"]

    async def test_sent_again_under_its_key_is_the_same_answer(
        self, client: httpx.AsyncClient
    ) -> None:
        asked = await waiting(client, "twice")
        key = {"Idempotency-Key": "one"}
        answers = await asyncio.gather(
            *(asked.answer("one", headers=key) for _ in range(6)),
        )
        answers.append(await asked.answer("one", headers=key))
        assert {answer.status_code for answer in answers} == {200}
        assert {answer.json()["run_id"] for answer in answers} == {asked.run_id}
        assert refusal(await asked.answer("two", headers=key)) == (409, "idempotency_conflict")
        await read_run(client, asked.location)
        await asked.answer_and_read("two")
        assert await asked.told() == ["first? one", "second? two"]

    async def test_that_was_refused_may_be_sent_again_under_its_key(
        self, client: httpx.AsyncClient
    ) -> None:
        thread = f"/threads/{await new_thread(client)}"
        asked = Waiting(client, thread, "", "once", [])
        for _ in range(2):
            answer = await asked.answer("one", headers={"Idempotency-Key": "one"})
            assert refusal(answer) == (409, "nothing_waits")

    async def test_repeats_what_the_run_was_made_with(self, client: httpx.AsyncClient) -> None:
        made: dict[str, Any] = {
            "config": {"tags": ["a"], "recursion_limit": 9, "configurable": {"depth": 1}},
            "context": {"word": "bees"},
            "metadata": {"topic": "bees"},
            "multitask_strategy": "interrupt",
            "priority": 3,
        }
        asked = await waiting(client, **made)
        state = (await client.get(f"{asked.thread}/state")).json()
        frames = await asked.answer_and_read(
            "Ada",
            **{**made, "config": {"configurable": {"depth": 1, "thread_id": str(uuid4())}}},
            checkpoint=state["checkpoint"],
            if_not_exists="create",
            on_disconnect="continue",
            durability="async",
            stream_resumable=True,
        )
        assert status_of(frames) == "success"

    async def test_may_take_its_time_which_is_none_of_the_runs(
        self, client: httpx.AsyncClient, superuser: asyncpg.Connection
    ) -> None:
        asked = await waiting(client)
        spent = "SELECT active_seconds FROM runs WHERE run_id = $1"
        before = await superuser.fetchval(spent, asked.run_id)
        await superuser.execute(
            "UPDATE runs SET claimed_at = claimed_at - interval '9 days',"
            " updated_at = updated_at - interval '9 days' WHERE run_id = $1",
            asked.run_id,
        )
        await asked.answer_and_read("Ada")
        assert before <= await superuser.fetchval(spent, asked.run_id) < before + 60


class TestWhatIsNoAnswer:
    @pytest.mark.parametrize(
        "fields",
        [
            {"command": {"resume": None}},
            {"command": {"resume": "x" * 1000}},
            {"command": {"resume": "yes", "goto": "ask"}},
            {"command": {"resume": "yes", "update": {"told": ["forged"]}}},
            {"command": {"goto": "ask"}},
            {"command": {"resume": {"lc": 1}}},
            {"command": "yes"},
            {"input": {"told": ["forged"]}},
            {"assistant_id": "twice"},
            {"after_seconds": 1},
            {"config": {"tags": ["another"]}},
            {"config": {"recursion_limit": 3}},
            {"config": {"configurable": {"depth": 1}}},
            {"config": {"metadata": {"topic": "wasps"}}},
            {"context": {"word": "wasps"}},
            {"metadata": {"topic": "wasps"}},
            {"multitask_strategy": "reject"},
            {"priority": 1},
            {"checkpoint_id": str(uuid4())},
            {"strict_resume": True},
        ],
    )
    async def test_is_refused_and_the_run_waits_on(
        self, asked_once: Waiting, fields: dict[str, Any]
    ) -> None:
        body = {"assistant_id": "once", "command": {"resume": "yes"}, **fields}
        for route in ("", "/stream", "/wait"):
            answer = await asked_once.client.post(f"{asked_once.thread}/runs{route}", json=body)
            assert answer.status_code in (400, 422), answer.text
        assert (await asked_once.run())["state"] == "waiting"

    async def test_to_another_question_is_refused(self, asked_once: Waiting) -> None:
        (open_one,) = await asked_once.questions()
        for resume in ({"0" * 32: "yes"}, {open_one: "yes", "0" * 32: "yes"}):
            assert refusal(await asked_once.answer(resume)) == (409, "nothing_waits")
        assert (await asked_once.run())["state"] == "waiting"

    @pytest.mark.parametrize("thread", ["idle", "answered", "stopped"])
    async def test_where_nothing_waits_any_more_is_refused(
        self, client: httpx.AsyncClient, thread: str
    ) -> None:
        asked = await waiting(client)
        if thread == "idle":
            asked.thread = f"/threads/{await new_thread(client)}"
        elif thread == "answered":
            await asked.answer_and_read("Ada")
        else:
            await client.post(f"{asked.location}/cancel")
        assert refusal(await asked.answer("Ada")) == (409, "nothing_waits")

    async def test_of_a_stranger_is_answered_as_on_no_thread(
        self, service: RunningService, client: httpx.AsyncClient
    ) -> None:
        asked = await waiting(client)
        stranger = service.client(uuid4().hex)
        theirs = Waiting(stranger, asked.thread, asked.location, "once", [])
        nowhere = Waiting(stranger, f"/threads/{uuid4()}", "", "once", [])
        for one in (theirs, nowhere):
            for _ in range(2):
                answer = await one.answer("mine", if_not_exists="create")
                assert refusal(answer) == (404, "thread_not_found")
        assert (await asked.run())["state"] == "waiting"
        assert await asked.questions()


class TestInsteadOfAnAnswer:
    async def test_a_new_message_ends_what_waited(self, client: httpx.AsyncClient) -> None:
        asked = await waiting(client)
        await start_run(
            client,
            asked.thread.rpartition("/")[2],
            assistant="twice",
            graph_input={"told": ["anew"]},
        )
        assert (await asked.run())["state"] == "cancelled"

    async def test_stopping_ends_it_and_an_empty_run_goes_on_asking(
        self, client: httpx.AsyncClient
    ) -> None:
        asked = await waiting(client)
        answer = await client.post(f"{asked.location}/cancel?wait=1")
        assert answer.status_code in (200, 204)
        assert (await asked.run())["state"] == "cancelled"
        body = {"assistant_id": "once", "input": None}
        values = (await client.post(f"{asked.thread}/runs/wait", json=body)).json()
        assert [each["value"] for each in values["__interrupt__"]] == ["name?"]
        # It waits at a state that another run made.
        assert status_of((await _as_last(asked)).log) == "interrupted"
        assert status_of(await (await _as_last(asked)).answer_and_read("Ada")) == "success"
        assert await asked.told() == ["name? Ada"]

    async def test_deleting_the_thread_leaves_nothing_to_answer(
        self, client: httpx.AsyncClient
    ) -> None:
        asked = await waiting(client)
        assert (await client.delete(asked.thread)).status_code == 204
        assert refusal(await asked.answer("Ada")) == (404, "thread_not_found")

    async def test_changing_the_state_by_hand_has_to_wait(self, client: httpx.AsyncClient) -> None:
        asked = await waiting(client)
        answer = await client.post(f"{asked.thread}/state", json={"values": {"told": ["x"]}})
        assert refusal(answer) == (409, "thread_busy")
        assert status_of(await asked.answer_and_read("Ada")) == "success"


async def _as_last(asked: Waiting) -> Waiting:
    """The same thread, with its newest run."""
    newest = (await asked.client.get(f"{asked.thread}/runs?limit=1")).json()[0]
    location = f"{asked.thread}/runs/{newest['run_id']}"
    log = await read_run(asked.client, location)
    return Waiting(asked.client, asked.thread, location, asked.graph, log)
