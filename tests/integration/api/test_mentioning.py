"""Messages that point at things: what is not their author's is refused, by every way in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.integration.api.test_bad_input import SECRET, assert_problem
from tests.integration.api.test_mentions import titled
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service

NOWHERE = "http://127.0.0.1:9"
OTHER = "model:other:7b"
WAYS = ("runs", "runs/stream", "runs/wait", "state", "scheduled")


@pytest.fixture(scope="module")
async def two(postgres: PostgresServer) -> AsyncIterator[RunningService]:
    """A service with two models, whose runs stay in the queue."""
    pools = (
        {"name": "first", "url": NOWHERE},
        {"name": "second", "url": NOWHERE, "model": "other:7b"},
    )
    async with running_service(postgres, worker=False, pool=pools) as running:
        yield running


def pointing(*refs: object, content: str = "Look at @that") -> dict[str, Any]:
    return {"type": "human", "content": content, "additional_kwargs": {"mentions": [*refs]}}


async def send(
    http: httpx.AsyncClient,
    messages: Sequence[dict[str, Any]],
    way: str = "runs",
    assistant: str = "agent",
    **more: Any,
) -> httpx.Response:
    thread = (await http.post("/threads", json={})).json()["thread_id"]
    given = {"messages": [*messages]}
    if way == "state":
        body: dict[str, Any] = {"values": given}
    else:
        body = {"assistant_id": assistant, "input": given, **more}
    if way == "scheduled":
        body["after_seconds"], way = 3600, "runs"
    answer = await http.post(f"/threads/{thread}/{way}", json=body)
    if answer.status_code == 422:
        runs = (await http.get(f"/threads/{thread}/runs")).json()
        values = (await http.get(f"/threads/{thread}/state")).json()["values"]
        assert not runs
        assert not values
    return answer


class TestAMessage:
    @pytest.mark.parametrize("way", ["runs", "state", "scheduled"])
    async def test_may_point_at_what_is_ones_own(self, idle: RunningService, way: str) -> None:
        ada = idle.client("ada-points")
        thread = await titled(ada, "Plans")
        memory = (await ada.post("/memories", json={"content": "Has plans."})).json()["memory_id"]
        refs = [f"thread:{thread}", f"memory:{memory}", "tool:stoa:time_now"]
        refs += ["model:smollm2:latest", f"thread:{thread}"]
        answer = await send(ada, [pointing(*refs)], way)
        assert answer.status_code == 200, answer.text

    @pytest.mark.parametrize("way", WAYS)
    async def test_may_not_point_at_what_is_somebody_elses(
        self, idle: RunningService, way: str
    ) -> None:
        ada, bob = idle.client("ada-has"), idle.client("bob-points")
        hers = await titled(ada, "Plans")
        memory = (await ada.post("/memories", json={"content": SECRET})).json()["memory_id"]
        his = await titled(bob, "Mine")
        told = []
        for ref in (
            *(f"thread:{hers}", f"memory:{memory}"),
            *(f"thread:{uuid4()}", f"memory:{uuid4()}"),
        ):
            answer = await send(bob, [pointing(f"thread:{his}", ref)], way)
            problem = assert_problem(answer, 422)
            assert problem["code"] == "mention_not_found"
            told.append(problem["detail"])
        assert set(told) == {
            "`messages[0].additional_kwargs.mentions[1]` points at what is not there."
        }

    async def test_is_told_of_all_that_is_not_there(self, idle: RunningService) -> None:
        ada = idle.client("ada-misses")
        plans = await titled(ada, "Plans")
        refs = (f"thread:{uuid4()}", f"thread:{plans}", f"memory:{uuid4()}")
        problem = assert_problem(await send(ada, [pointing(*refs)]), 422)
        assert [each["loc"] for each in problem["errors"]] == [
            ["messages", 0, "additional_kwargs", "mentions", place] for place in (0, 2)
        ]

    async def test_may_not_point_at_what_is_gone(self, idle: RunningService) -> None:
        ada = idle.client("ada-deletes")
        memory = (await ada.post("/memories", json={"content": "Was."})).json()["memory_id"]
        assert (await ada.delete(f"/memories/{memory}")).status_code == 204
        answer = await send(ada, [pointing(), pointing(f"memory:{memory}")])
        problem = assert_problem(answer, 422)
        assert problem["detail"].startswith("`messages[1].additional_kwargs.mentions[0]` ")

    @pytest.mark.parametrize(
        "ref",
        [
            f"thread:{SECRET}",
            f"memory:{SECRET}",
            f"tool:stoa:{SECRET}",
            f"tool:{SECRET}:do",
            f"resource:notes:file:///{SECRET}",
            f"prompt:notes:{SECRET}",
            f"model:{SECRET}",
        ],
    )
    async def test_may_not_point_at_what_nobody_offers(
        self, idle: RunningService, ref: str
    ) -> None:
        answer = await send(idle.client("ada-invents"), [pointing(ref)])
        assert assert_problem(answer, 422)["code"] == "mention_not_found"

    @pytest.mark.parametrize(
        "more",
        [
            {"mentions": ["file:somewhere"]},
            {"mentions": ["thread"]},
            {"mentions": ["thread:"]},
            {"mentions": ["tool:time_now"]},
            {"mentions": ["tool::time_now"]},
            {"mentions": [""]},
            {"mentions": ["thread:" + "x" * 2000]},
            {"mentions": [7]},
            {"mentions": ["model:smollm2:latest"] * 101},
            {"mentions": {}},
            {"mentions": "thread:x"},
            {"mentions": None},
            {"mentions": [], "else": 1},
            {"else": 1},
            [],
        ],
        ids=lambda more: str(more)[:40],
    )
    @pytest.mark.parametrize("way", ["runs", "state"])
    async def test_says_nothing_else_beside_its_text(
        self, idle: RunningService, way: str, more: object
    ) -> None:
        message = {"type": "human", "content": "Hello", "additional_kwargs": more}
        answer = await send(idle.client("ada-mistells"), [message], way)
        assert assert_problem(answer, 422)["code"] == "invalid_input"

    async def test_to_an_operators_graph_points_at_nothing(self, idle: RunningService) -> None:
        ada = idle.client("ada-elsewhere")
        refs = ["tool:stoa:time_now"]
        answer = await send(ada, [pointing(*refs)], assistant="tooling")
        assert assert_problem(answer, 422)["code"] == "invalid_input"


class TestAMentionedModel:
    @pytest.mark.parametrize(
        ("messages", "config", "chosen"),
        [
            ([pointing(OTHER)], None, "other:7b"),
            ([pointing(OTHER, "model:smollm2:latest")], {}, "other:7b"),
            ([pointing(OTHER)], {"configurable": {"model": None}}, "other:7b"),
            (
                [pointing(OTHER)],
                {"configurable": {"model": "smollm2"}},
                "smollm2:latest",
            ),
            ([pointing(OTHER), pointing()], None, None),
            ([pointing()], None, None),
        ],
        ids=["one", "two", "null", "chosen", "earlier", "none"],
    )
    async def test_is_the_runs_where_none_is_chosen(
        self,
        two: RunningService,
        messages: list[dict[str, Any]],
        config: dict[str, Any] | None,
        chosen: str | None,
    ) -> None:
        ada = two.client(f"ada-chooses-{uuid4().hex[:8]}")
        answer = await send(ada, messages, "runs", config=config)
        assert answer.status_code == 200, answer.text
        run = answer.json()
        path = f"/threads/{run['thread_id']}/runs"
        (kept,) = (await ada.get(path, params={"select": "kwargs"})).json()
        assert kept["kwargs"]["config"].get("configurable", {}).get("model") == chosen
