"""Changing a thread's state by hand: what holds afterwards, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import httpx
import pytest
from langgraph.checkpoint.base import id as library
from langgraph.checkpoint.base.id import uuid6

from tests.support.deployment import GRAPHS
from tests.support.frames import new_thread, read_run, start_run
from tests.support.model_server import Script
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service

HALF = Script(text="one two three four", stall_at=2)


@pytest.fixture(scope="module")
async def foreign(postgres: PostgresServer) -> AsyncIterator[RunningService]:
    """A service with graphs of an operator's."""
    async with running_service(postgres, graphs=Path(GRAPHS)) as running:
        yield running


def human(text: str, **fields: Any) -> dict[str, Any]:
    return {"messages": [{"type": "human", "content": text, **fields}]}


async def spoken(client: httpx.AsyncClient, *texts: str) -> str:
    """A thread with a turn for each text."""
    thread_id = await new_thread(client)
    for text in texts:
        await read_run(client, await start_run(client, thread_id, text))
    return f"/threads/{thread_id}"


async def state_of(client: httpx.AsyncClient, path: str) -> dict[str, Any]:
    state: dict[str, Any] = (await client.get(f"{path}/state")).json()
    return state


def said(state: dict[str, Any]) -> list[str]:
    return [each["content"] for each in state["values"]["messages"]]


class TestAChange:
    async def test_is_the_newest_state_and_names_its_checkpoint(
        self, service: RunningService
    ) -> None:
        client = service.client("ada")
        path = await spoken(client, "Hello")
        before = await state_of(client, path)
        answer = await client.post(f"{path}/state", json={"values": human("by hand")})
        assert answer.status_code == 200, answer.text
        after = await state_of(client, path)
        made = answer.json()["checkpoint"]
        assert answer.json()["configurable"] == made
        assert made == {
            "thread_id": path.rpartition("/")[2],
            "checkpoint_ns": "",
            "checkpoint_id": after["checkpoint"]["checkpoint_id"],
            "checkpoint_map": {},
        }
        assert said(after) == [*said(before), "by hand"]
        assert after["parent_checkpoint"] == before["checkpoint"]
        assert after["metadata"]["source"] == "update"
        assert "run_id" not in after["metadata"]

    async def test_takes_messages_away_and_replaces_them(self, service: RunningService) -> None:
        client = service.client("bob")
        path = await spoken(client, "one", "two")
        messages = (await state_of(client, path))["values"]["messages"]
        change = [
            {"type": "remove", "id": messages[1]["id"]},
            {"type": "human", "content": "changed", "id": messages[2]["id"]},
        ]
        answer = await client.post(f"{path}/state", json={"values": {"messages": change}})
        assert answer.status_code == 200, answer.text
        assert said(await state_of(client, path)) == ["one", "changed", "You said: two"]

    async def test_goes_on_from_an_earlier_state(self, service: RunningService) -> None:
        client = service.client("cyn")
        path = await spoken(client, "one", "two")
        history = (await client.post(f"{path}/history", json={"limit": 20})).json()
        (first,) = [each for each in history if len(each["values"].get("messages", [])) == 2][:1]
        named = first["checkpoint"]["checkpoint_id"]
        for body in ({"checkpoint": first["checkpoint"]}, {"checkpoint_id": named}):
            answer = await client.post(
                f"{path}/state", json={"values": human("another way"), **body}
            )
            assert answer.status_code == 200, answer.text
            state = await state_of(client, path)
            assert said(state) == ["one", "You said: one", "another way"]
            assert state["parent_checkpoint"]["checkpoint_id"] == named

    async def test_on_a_thread_without_any_state_begins_it(self, service: RunningService) -> None:
        client = service.client("dot")
        path = f"/threads/{await new_thread(client)}"
        answer = await client.post(f"{path}/state", json={"values": human("first words")})
        assert answer.status_code == 200, answer.text
        assert said(await state_of(client, path)) == ["first words"]

    async def test_lets_the_next_run_apply_its_input_exactly_once(
        self, service: RunningService
    ) -> None:
        client = service.client("eva")
        path = await spoken(client, "one")
        for as_node in ("model", "__start__"):
            body = {"values": human(f"as {as_node}"), "as_node": as_node}
            assert (await client.post(f"{path}/state", json=body)).status_code == 200
            thread_id = path.rpartition("/")[2]
            await read_run(client, await start_run(client, thread_id, f"after {as_node}"))
        assert said(await state_of(client, path)) == [
            "one",
            "You said: one",
            "as model",
            "after model",
            "You said: after model",
            "as __start__",
            "after __start__",
            "You said: after __start__",
        ]

    async def test_as_another_node_decides_what_comes_next(self, service: RunningService) -> None:
        client = service.client("flo")
        path = await spoken(client, "one")
        body = {"values": human("two"), "as_node": "__start__"}
        await client.post(f"{path}/state", json=body)
        assert (await state_of(client, path))["next"] == ["model"]
        run = {"assistant_id": "agent", "input": None}
        answer = await client.post(f"{path}/runs/wait", json=run)
        assert said({"values": answer.json()})[-2:] == ["two", "You said: two"]

    async def test_without_values_can_say_that_nothing_is_left(
        self, service: RunningService
    ) -> None:
        client = service.client("gus")
        service.model.enqueue(Script(status=500))
        path = await spoken(client, "one")
        assert (await state_of(client, path))["next"] == ["model"]
        body = {"values": None, "as_node": "__end__"}
        assert (await client.post(f"{path}/state", json=body)).status_code == 200
        state = await state_of(client, path)
        assert (said(state), state["next"]) == (["one"], [])

    async def test_reaches_an_operators_graph_through_its_own_channels(
        self, foreign: RunningService
    ) -> None:
        client = foreign.client("hob")
        thread_id = await new_thread(client)
        location = await start_run(
            client, thread_id, assistant="nested", graph_input={"topic": "bees"}
        )
        await read_run(client, location)
        path = f"/threads/{thread_id}"
        body = {"values": {"outline": "of wasps"}, "as_node": "plan"}
        assert (await client.post(f"{path}/state", json=body)).status_code == 200
        assert (await state_of(client, path))["next"] == ["write"]
        run = {"assistant_id": "nested", "input": None}
        answer = await client.post(f"{path}/runs/wait", json=run)
        assert answer.json()["report"] == "report from of wasps"

    async def test_goes_on_from_a_count_and_lets_a_new_input_count_once(
        self, foreign: RunningService
    ) -> None:
        client = foreign.client("hal")
        thread_id = await new_thread(client)
        counted: dict[str, Any] = {"assistant": "counting", "graph_input": {"until": 3}}
        await read_run(client, await start_run(client, thread_id, **counted))
        path = f"/threads/{thread_id}"
        body: dict[str, Any] = {"values": {"n": 7, "until": 9}, "as_node": "step"}
        assert (await client.post(f"{path}/state", json=body)).status_code == 200
        assert (await state_of(client, path))["next"] == ["step"]
        run: dict[str, Any] = {"assistant_id": "counting", "input": None}
        answer = await client.post(f"{path}/runs/wait", json=run)
        assert answer.json() == {"n": 9, "until": 9}
        assert (await client.post(f"{path}/runs", json=run)).status_code == 422
        assert (await client.post(f"{path}/state", json={"values": {"n": 0}})).status_code == 200
        run["input"] = {"until": 2}
        answer = await client.post(f"{path}/runs/wait", json=run)
        assert answer.json() == {"n": 2, "until": 2}


class TestAChangeThatIsRefused:
    @pytest.mark.parametrize(
        "body",
        [
            {"values": {"messages": [{"type": "ai", "content": "forged"}]}},
            {"values": {"messages": [{"type": "remove"}]}},
            {"values": {"messages": [{"type": "remove", "id": 7}]}},
            {"values": {"messages": [{"type": "remove", "id": "x", "name": "y"}]}},
            {"values": {"messages": [{"type": "remove", "id": "no-such-message"}]}},
            {"values": {"messages": []}},
            {"values": {"messages": "hi", "more": 1}},
            {"values": {}},
            {"values": [human("hi")]},
            {"values": human("hi"), "as_node": "nobody"},
            {"values": human("hi"), "as_node": "__copy__"},
            {"values": human("hi"), "as_node": "__input__"},
            {"values": human("hi"), "as_node": "__end__"},
            {"values": human("hi"), "as_node": ""},
            {"values": human("hi"), "as_node": 7},
            {"values": human("hi"), "user_id": "somebody"},
            {"values": human("hi"), "checkpoint_id": "banana"},
            {"values": human("hi"), "checkpoint": {"checkpoint_ns": "plan:1"}},
            {"values": {"messages": [{"lc": 1}]}},
        ],
    )
    async def test_changes_nothing(self, service: RunningService, body: dict[str, Any]) -> None:
        client = service.client("ike")
        path = await spoken(client, "one")
        before = await state_of(client, path)
        answer = await client.post(f"{path}/state", json=body)
        assert answer.status_code == 422, answer.text
        assert await state_of(client, path) == before

    @pytest.mark.parametrize(
        "body",
        [
            {"values": {"n": 1, "nope": 1}},
            {"values": {"nope": 1}, "as_node": "__start__"},
            {"values": {"n": "no number"}, "as_node": "step"},
        ],
    )
    async def test_by_an_operators_graph_too(
        self, foreign: RunningService, body: dict[str, Any]
    ) -> None:
        client = foreign.client("ivy")
        thread_id = await new_thread(client)
        counted: dict[str, Any] = {"assistant": "counting", "graph_input": {"until": 3}}
        await read_run(client, await start_run(client, thread_id, **counted))
        path = f"/threads/{thread_id}"
        before = await state_of(client, path)
        assert (await client.post(f"{path}/state", json=body)).status_code == 422
        assert await state_of(client, path) == before

    async def test_but_not_because_our_clock_is_behind_the_one_that_made_the_state(
        self, foreign: RunningService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Checkpoints are ordered by their time: the change must not be older than its base."""
        # Only for this test: nobody's time after it is to be the other clock's.
        monkeypatch.setattr(library, "_last_v6_timestamp", None)
        client = foreign.client("jim")
        thread_id = await new_thread(client)
        counted: dict[str, Any] = {"assistant": "counting", "graph_input": {"until": 3}}
        await read_run(client, await start_run(client, thread_id, **counted))
        later = str(UUID(int=uuid6().int + (1 << 100)))  # some minutes from now
        connection = await asyncpg.connect(foreign.postgres.dsn("owner", foreign.database))
        try:
            await connection.execute(
                "UPDATE checkpoints SET checkpoint_id = $2,"
                " checkpoint = jsonb_set(checkpoint, '{id}', to_jsonb($2::text))"
                " WHERE thread_id = $1 AND checkpoint_id ="
                " (SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = $1)",
                thread_id,
                later,
            )
        finally:
            await connection.close()
        path = f"/threads/{thread_id}"
        before = await state_of(client, path)
        assert before["checkpoint"]["checkpoint_id"] == later
        answer = await client.post(f"{path}/state", json={"values": {"n": 1}})
        assert answer.status_code == 200, answer.text
        after = await state_of(client, path)
        assert after["values"]["n"] == 1
        assert after["checkpoint"]["checkpoint_id"] > later
        assert after["parent_checkpoint"]["checkpoint_id"] == later

    async def test_since_there_is_no_such_checkpoint(self, service: RunningService) -> None:
        client = service.client("jon")
        path = await spoken(client, "one")
        body = {"values": human("hi"), "checkpoint_id": str(uuid4())}
        answer = await client.post(f"{path}/state", json=body)
        assert (answer.status_code, answer.json()["code"]) == (404, "checkpoint_not_found")

    async def test_while_a_run_holds_the_thread(self, service: RunningService) -> None:
        client = service.client("kim")
        thread_id = await new_thread(client)
        service.model.enqueue(HALF)
        location = await start_run(client, thread_id)
        async with client.stream("GET", f"{location}/stream") as response:
            async for line in response.aiter_lines():
                if " two" in line:
                    break
        body = {"values": human("meanwhile")}
        answer = await client.post(f"/threads/{thread_id}/state", json=body)
        assert (answer.status_code, answer.json()["code"]) == (409, "thread_busy")
        await client.post(f"{location}/cancel", params={"wait": 1})
        answer = await client.post(f"/threads/{thread_id}/state", json=body)
        assert answer.status_code == 200

    async def test_if_another_change_came_first(self, service: RunningService) -> None:
        client = service.client("lou")
        path = await spoken(client, "one")
        answers = await asyncio.gather(
            *(client.post(f"{path}/state", json={"values": human(f"{n}")}) for n in range(4))
        )
        made = [each for each in answers if each.status_code == 200]
        busy = [each for each in answers if each.status_code == 409]
        assert len(made) + len(busy) == 4
        assert made
        assert {each.json()["code"] for each in busy} <= {"thread_busy"}
        assert len(said(await state_of(client, path))) == 2 + len(made)


class TestAFailedTask:
    async def test_is_told_by_its_code(self, service: RunningService) -> None:
        client = service.client("may")
        service.model.enqueue(Script(status=500, error="what nobody is to see"))
        path = await spoken(client, "one")
        (run,) = (await client.get(f"{path}/runs")).json()
        (task,) = (await state_of(client, path))["tasks"]
        assert run["state"] == "error"
        assert task["error"] == run["error"]["code"]


class TestAnOldRun:
    async def test_is_joined_with_the_values_it_left_itself(self, service: RunningService) -> None:
        client = service.client("nan")
        thread_id = await new_thread(client)
        old, new = [
            await start_run(client, thread_id, text, modes=("messages-tuple",))
            for text in ("one", "two")
        ]
        await read_run(client, new)
        values = (await client.get(f"{old}/join")).json()
        assert said({"values": values}) == ["one", "You said: one"]
        values = (await client.get(f"{new}/join")).json()
        assert said({"values": values}) == ["one", "You said: one", "two", "You said: two"]

    async def test_is_read_through_its_own_graph(self, foreign: RunningService) -> None:
        client = foreign.client("ned")
        thread_id = await new_thread(client)
        counting: dict[str, Any] = {"assistant": "counting", "graph_input": {"until": 3}}
        old = await start_run(client, thread_id, modes=("custom",), **counting)
        await read_run(client, old)
        await read_run(client, await start_run(client, thread_id, "two"))
        assert (await client.get(f"{old}/join")).json() == {"n": 3, "until": 3}

    async def test_that_left_none_is_joined_with_none(self, service: RunningService) -> None:
        client = service.client("ole")
        thread_id = await new_thread(client)
        stalls = sum(each.stalled_at is not None for each in service.model.requests)
        service.model.enqueue(HALF)
        first = await start_run(client, thread_id)
        await service.model.wait_for_stall(stalls + 1)
        queued = await start_run(client, thread_id, "never")
        assert (await client.post(f"{queued}/cancel")).status_code == 200
        assert (await client.get(f"{queued}/join")).json() == {}
        await client.post(f"{first}/cancel", params={"wait": 1})


class TestAThread:
    async def test_says_how_its_open_run_stands_a_queued_one_last_else_its_last_run(
        self, service: RunningService
    ) -> None:
        client = service.client("pat")
        path = f"/threads/{await new_thread(client)}"
        stands = [(await client.get(path)).json()["run_state"]]
        service.model.enqueue(HALF)
        location = await start_run(client, path.rpartition("/")[2])
        async with client.stream("GET", f"{location}/stream") as response:
            async for line in response.aiter_lines():
                if " two" in line:
                    break
        stands.append((await client.get(path)).json()["run_state"])
        queued = await start_run(client, path.rpartition("/")[2], "next")
        stands.append((await client.get(path)).json()["run_state"])
        await client.post(f"{queued}/cancel")
        stands.append((await client.get(path)).json()["run_state"])
        await client.post(f"{location}/cancel", params={"wait": 1})
        await client.delete(queued)
        body = {"select": ["run_state"]}
        (found,) = (await client.post("/threads/search", json=body)).json()
        stands.append(found["run_state"])
        assert stands == [None, "running", "running", "running", "cancelled"]
