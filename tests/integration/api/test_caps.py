"""What happens at a limit: a refusal that names it and says when to try again, and nothing done."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tenancy.scheduler.limits import RULES
from tests.support.frames import new_thread, read_run, start_run
from tests.support.graphs.working import FOLDER
from tests.support.limits import limit, limits_of, named, settled_usage
from tests.support.model_server import Script, ToolCall
from tests.support.service import RunningService

BODY: dict[str, Any] = {
    "assistant_id": "agent",
    "input": {"messages": [{"role": "user", "content": "Hello"}]},
}
PATIENCE = 30
QUOTA_EXCEEDED = "https://iana.org/assignments/http-problem-types#quota-exceeded"
COUNTING = {"assistant_id": "counting", "input": {"until": 40}}


def refused(answer: httpx.Response, code: str, name: str) -> httpx.Response:
    """See that an answer is a refusal that says which limit it is about."""
    assert answer.status_code == 429, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert (problem["code"], problem["type"]) == (code, QUOTA_EXCEEDED)
    assert problem["violated-policies"] == [name]
    assert name in RULES
    assert f'"{name}";r=0' in answer.headers["ratelimit"]
    assert f'"{name}";q=' in answer.headers["ratelimit-policy"]
    return answer


class TestTheRateOfRequests:
    async def test_is_told_with_every_answer(self, idle: RunningService) -> None:
        http = idle.client("polite")
        await limit(idle, http, requests_per_minute=100)
        began = time.monotonic()
        thread = await new_thread(http)
        asked = [
            ("GET", "/me", None),
            ("GET", f"/threads/{uuid4()}", None),
            ("POST", "/threads/search", {"limit": -1}),
            ("DELETE", f"/threads/{uuid4()}", None),
        ]
        for counted, (method, path, body) in enumerate(asked, start=2):
            answer = await http.request(method, path, json=body)
            assert answer.headers["ratelimit-policy"] == '"requests_per_minute";q=100;w=60'
            name, left, _ = answer.headers["ratelimit"].split(";")
            assert name == '"requests_per_minute"'
            there_again = (time.monotonic() - began) * 100 / 60
            assert int(left.removeprefix("r=")) <= 100 - counted + there_again
        async with http.stream("GET", f"/threads/{thread}/stream") as stream:
            assert stream.headers["ratelimit"].startswith('"requests_per_minute";r=')
        nobody = await idle.client(None).get("/me")
        assert (nobody.status_code, "ratelimit" in nobody.headers) == (401, False)

    async def test_holds_over_all_web_processes(self, idle: RunningService) -> None:
        web = await idle.start_web()
        here, there = idle.client("hasty"), idle.client("hasty", url=web.url)
        other = idle.client("calm")
        await limit(idle, here, requests_per_minute=3)
        began = time.monotonic()
        answers = [await client.get("/me") for client in (here, there) * 4]
        there_again = int((time.monotonic() - began) / 20)
        # One was counted before.
        assert 2 <= [each.status_code for each in answers].count(200) <= 3 + there_again
        denied = next(each for each in answers if each.status_code != 200)
        last = refused(denied, "request_rate_exceeded", "requests_per_minute")
        assert 1 <= int(last.headers["retry-after"]) <= 20
        assert (await other.get("/me")).status_code == 200

    async def test_lets_one_in_when_it_said_so(self, idle: RunningService) -> None:
        http = idle.client("eager")
        await limit(idle, http, requests_per_minute=60)
        while (answer := await http.get("/me")).status_code == 200:
            pass
        seconds = int(
            refused(answer, "request_rate_exceeded", "requests_per_minute").headers["retry-after"]
        )
        assert seconds == 1
        await asyncio.sleep(seconds)
        assert (await http.get("/me")).status_code == 200

    async def test_does_nothing_of_what_it_refuses(self, idle: RunningService) -> None:
        http = idle.client("rushed")
        thread = await new_thread(http)
        who = await limit(idle, http, requests_per_minute=1)
        async with asyncio.timeout(PATIENCE):  # those before it are counted yet
            while not (await http.get("/me")).is_success:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        answer = await http.post(f"/threads/{thread}/runs", json=BODY)
        refused(answer, "request_rate_exceeded", "requests_per_minute")
        await limit(idle, http, who, requests_per_minute=None)
        assert (await http.get(f"/threads/{thread}/runs")).json() == []


class TestQueuedRuns:
    async def test_are_as_many_as_may_wait_those_for_later_too(self, idle: RunningService) -> None:
        http = idle.client("piling")
        await limit(idle, http, queued=2)
        thread = await new_thread(http)
        await start_run(http, thread)
        later = await start_run(http, thread, after_seconds=3600)
        for route in ("", "/stream", "/wait"):
            answer = await http.post(f"/threads/{thread}/runs{route}", json=BODY)
            refused(answer, "too_many_queued_runs", "queued")
        answer = await http.post(
            f"/threads/{uuid4()}/runs", json={**BODY, "if_not_exists": "create"}
        )
        refused(answer, "too_many_queued_runs", "queued")
        assert (await http.post("/threads/count", json={})).json() == 1
        await http.post(f"{later}/cancel")
        await start_run(http, thread)

    async def test_may_be_asked_for_again_with_the_same_key(self, idle: RunningService) -> None:
        http = idle.client("repeating")
        await limit(idle, http, queued=1)
        path = f"/threads/{await new_thread(http)}/runs"
        once = {"Idempotency-Key": "once"}
        made = (await http.post(path, json=BODY, headers=once)).json()
        again = await http.post(path, json=BODY, headers=once)
        assert (again.status_code, again.json()["run_id"]) == (200, made["run_id"])
        answer = await http.post(path, json=BODY, headers={"Idempotency-Key": "twice"})
        refused(answer, "too_many_queued_runs", "queued")
        await limit(idle, http, queued=2)
        # What was refused has not used up its key.
        assert (await http.post(path, json=BODY, headers={"Idempotency-Key": "twice"})).is_success

    async def test_of_many_at_once_are_no_more(self, idle: RunningService) -> None:
        http = idle.client("stampede")
        await limit(idle, http, queued=3)
        paths = [f"/threads/{await new_thread(http)}/runs" for _ in range(8)]
        answers = await asyncio.gather(*(http.post(path, json=BODY) for path in paths))
        assert sorted(each.status_code for each in answers) == [200] * 3 + [429] * 5
        assert named(await limits_of(http), "queued")["used"] == 3


class TestThreads:
    async def test_are_as_many_as_may_be_kept(self, idle: RunningService) -> None:
        http = idle.client("collector")
        await limit(idle, http, threads=1)
        thread = await new_thread(http)
        refused(await http.post("/threads", json={}), "too_many_threads", "threads")
        body = {**BODY, "if_not_exists": "create"}
        answer = await http.post(f"/threads/{uuid4()}/runs", json=body)
        refused(answer, "too_many_threads", "threads")
        assert (await http.post("/threads/count", json={})).json() == 1
        found = await http.post(f"/threads/{thread}/runs", json=body)
        assert found.status_code == 200
        there = {"thread_id": thread, "if_exists": "do_nothing"}
        assert (await http.post("/threads", json=there)).status_code == 200
        await http.delete(f"/threads/{thread}")
        assert (await http.post("/threads", json={})).status_code == 200

    async def test_may_be_asked_for_again_with_the_same_key(self, idle: RunningService) -> None:
        http = idle.client("insisting")
        await limit(idle, http, threads=1)
        once = {"Idempotency-Key": "once"}
        made = (await http.post("/threads", json={}, headers=once)).json()
        again = await http.post("/threads", json={}, headers=once)
        assert (again.status_code, again.json()["thread_id"]) == (200, made["thread_id"])

    async def test_of_many_at_once_are_no_more(self, idle: RunningService) -> None:
        http = idle.client("herd")
        await limit(idle, http, threads=3)
        answers = await asyncio.gather(*(http.post("/threads", json={}) for _ in range(8)))
        assert sorted(each.status_code for each in answers) == [200] * 3 + [429] * 5


class TestStreams:
    async def test_are_as_many_as_one_may_hold_open(self, idle: RunningService) -> None:
        http, other = idle.client("watching"), idle.client("glancing")
        await limit(idle, http, streams=1)
        path = f"/threads/{await new_thread(http)}/stream"
        async with http.stream("GET", path):
            refused(await http.get(path), "too_many_streams", "streams")
            async with other.stream("GET", "/events") as stream:
                assert stream.status_code == 200


class TestTokens:
    @pytest.mark.parametrize(("name", "longest"), [("tokens_per_day", 1), ("tokens_per_month", 31)])
    async def test_that_are_used_up_are_there_again_in_the_next(
        self, narrow: RunningService, name: str, longest: int
    ) -> None:
        http = narrow.client(f"all used up: {name}")
        thread = await new_thread(http)
        await read_run(http, await start_run(http, thread))
        await settled_usage(http, calls=1)
        budget: dict[str, Any] = {name: 1}
        await limit(narrow, http, **budget)
        answer = await http.post(f"/threads/{thread}/runs", json=BODY)
        refused(answer, "token_budget_exhausted", name)
        seconds = int(answer.headers["retry-after"])
        assert 0 < seconds <= longest * 86_400
        assert f'"{name}";r=0;t=' in answer.headers["ratelimit"]
        assert len((await http.get(f"/threads/{thread}/runs")).json()) == 1

    async def test_that_run_out_in_the_middle_end_the_run_which_goes_on_later(
        self, narrow: RunningService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(FOLDER, str(tmp_path))
        http = narrow.client("cut short")
        await limit(narrow, http, tokens_per_day=1)
        thread = await new_thread(http)
        narrow.model.enqueue(
            Script(tool_calls=(ToolCall(name="look_up", arguments={"name": "it"}),))
        )
        run = await start_run(http, thread, assistant="working")
        await settled_usage(http, calls=1)
        (tmp_path / "it.go").touch()
        frames = await read_run(http, run)
        assert frames[-1].data["status"] == "error"
        assert frames[-2].data["error"] == "token_budget_exhausted"
        assert (await http.get(run)).json()["error"]["code"] == "token_budget_exhausted"
        go_on = {"assistant_id": "working", "input": None}
        answer = await http.post(f"/threads/{thread}/runs", json=go_on)
        refused(answer, "token_budget_exhausted", "tokens_per_day")
        await limit(narrow, http)
        later = await http.post(f"/threads/{thread}/runs", json=go_on)
        assert later.status_code == 200, later.text
        frames = await read_run(http, later.headers["content-location"])
        assert frames[-1].data["status"] == "success"
        messages = (await http.get(f"/threads/{thread}/state")).json()["values"]["messages"]
        assert [each["type"] for each in messages] == ["human", "ai", "tool", "ai"]


class TestSteps:
    @pytest.mark.parametrize(("most", "status", "steps"), [(60, "success", 40), (10, "error", 10)])
    async def test_are_as_many_as_ones_own_limit_says(
        self, narrow: RunningService, most: int, status: str, steps: int
    ) -> None:
        http = narrow.client(f"stepping {most}")
        await limit(narrow, http, steps_per_run=most)
        thread = await new_thread(http)
        made = await http.post(f"/threads/{thread}/runs", json=COUNTING)
        frames = await read_run(http, made.headers["content-location"])
        assert frames[-1].data["status"] == status
        if status == "error":
            assert frames[-2].data["error"] == "recursion_limit"
        assert (await http.get(f"/threads/{thread}/state")).json()["values"]["n"] == steps

    async def test_may_be_chosen_up_to_that(self, narrow: RunningService) -> None:
        http = narrow.client("stepping far")
        thread = await new_thread(http)
        await limit(narrow, http, steps_per_run=30)
        above = {**COUNTING, "config": {"recursion_limit": 31}}
        answer = await http.post(f"/threads/{thread}/runs", json=above)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
        below = {**COUNTING, "config": {"recursion_limit": 5}}
        made = await http.post(f"/threads/{thread}/runs", json=below)
        await read_run(http, made.headers["content-location"])
        assert (await http.get(f"/threads/{thread}/state")).json()["values"]["n"] == 5


class TestMemory:
    async def test_that_is_full_ends_the_run_that_wants_more(self, narrow: RunningService) -> None:
        http = narrow.client("hoarding")
        await limit(narrow, http, memory_bytes=1000)
        thread = await new_thread(http)

        async def remember(**what: str) -> tuple[str, str | None]:
            run = await start_run(http, thread, assistant="remembering", graph_input=what)
            frames = await read_run(http, run)
            error = frames[-2].data["error"] if frames[-2].event == "error" else None
            return frames[-1].data["status"], error

        assert await remember(key="a", text=uuid4().hex * 10) == ("success", None)
        kept = named(await limits_of(http), "memory_bytes")["used"]
        much = "".join(uuid4().hex for _ in range(60))
        assert await remember(key="b", text=much) == ("error", "memory_full")
        assert named(await limits_of(http), "memory_bytes")["used"] == kept
        assert await remember(key="a", text="") == ("success", None)
        assert named(await limits_of(http), "memory_bytes")["used"] == 0
