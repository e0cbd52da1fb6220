"""A person's own feed: their limits and their runs, as they change, and silence otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from app.api import live, own_events
from app.api.own_events import pause_after
from app.api.own_limits import own_limits
from app.runs.changes import read_runs
from tests.support.expiry import SECONDS, expiry_at_will
from tests.support.frames import HEARTBEAT, Frame, follow, new_thread, read_run, start_run
from tests.support.limits import limit, limits_of, named, settled_usage
from tests.support.scheduled import MUCH_LATER, bring_forward
from tests.support.service import RunningService

PATIENCE = 30


class Feed:
    """What one reader hears."""

    def __init__(self, frames: AsyncIterator[Frame]) -> None:
        self._frames = frames
        self._limits: dict[str, Any] | None = None

    async def next(self) -> Frame:
        async with asyncio.timeout(PATIENCE):
            frame = await anext(self._frames)
        if frame.event == "limits":
            self._limits = frame.data
        return frame

    async def limits_where(self, name: str, used: int, **runs: int) -> dict[str, Any]:
        """The limits once so much of one is used, and so many runs are.

        A change of a run may be told after the limits that it has changed.
        """
        while (
            self._limits is None
            or named(self._limits, name)["used"] != used
            or not runs.items() <= self._limits["runs"].items()
        ):
            await self.next()
        return self._limits

    async def run_in(self, state: str) -> dict[str, Any]:
        """The first change of a run into a state."""
        while True:
            frame = await self.next()
            if frame.event == "run" and frame.data["state"] == state:
                found: dict[str, Any] = frame.data
                return found


@asynccontextmanager
async def feed(client: httpx.AsyncClient) -> AsyncIterator[Feed]:
    async with client.stream("GET", "/events") as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        yield Feed(follow(response))


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_events, "LOOK_SECONDS", 0.05)
    # However long a look takes on a busy machine.
    monkeypatch.setattr(own_events, "pause_after", lambda _took, _feeds: 0.05)


async def until_no_feed_is_open(service: RunningService) -> None:
    """Until it has been noticed that those of the tests before have gone."""
    async with asyncio.timeout(PATIENCE):
        while service.web.services.streams.count():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)


class TestTheFeed:
    async def test_begins_with_the_limits(self, idle: RunningService) -> None:
        http = idle.client("zoe")
        async with feed(http) as events:
            first = await events.next()
            assert first.event == "limits"
            found = await limits_of(http)
            for part in ("plan", "weight", "runs", "waiting", "models"):
                assert first.data[part] == found[part]

    async def test_tells_what_becomes_of_a_run(self, service: RunningService) -> None:
        http = service.client("yves")
        async with feed(http) as events:
            await events.next()
            thread = await new_thread(http)
            run = await start_run(http, thread)
            ended = await events.run_in("success")
            assert ended["run_id"] == run.rpartition("/")[2]
            assert (ended["thread_id"], ended["status"]) == (thread, "success")
            used = (await settled_usage(http, calls=1))["total"]
            tokens = used["prompt_tokens"] + used["output_tokens"]
            await events.limits_where("tokens_per_day", tokens, running=0)

    async def test_tells_of_a_run_that_waits_and_is_cancelled(self, idle: RunningService) -> None:
        http = idle.client("xena")
        async with feed(http) as events:
            await events.next()
            run = await start_run(http, await new_thread(http))
            await events.run_in("pending")
            waiting = (await events.limits_where("queued", 1))["waiting"]
            assert [each["waits_for"] for each in waiting] == ["start"]
            await http.post(f"{run}/cancel")
            assert (await events.run_in("cancelled"))["status"] == "interrupted"
            assert (await events.limits_where("queued", 0))["waiting"] == []

    async def test_tells_each_change_once(self, idle: RunningService) -> None:
        http = idle.client("walt")
        async with feed(http) as events:
            await events.next()
            run = await start_run(http, await new_thread(http))
            await events.run_in("pending")
            await http.post(f"{run}/cancel")
            await events.run_in("cancelled")
            # Whatever else is heard of it, late or twice.
            user_id = (await http.get("/me")).json()["user_id"]
            for _ in range(3):
                idle.web.services.tail._wake(f"{user_id}/{run.rpartition('/')[2]}")
                await asyncio.sleep(0.1)
            await start_run(http, await new_thread(http))
            while (frame := await events.next()).event != "run":
                pass
            assert frame.data["state"] == "pending"

    async def test_hears_nothing_of_others(self, idle: RunningService) -> None:
        mine, other = idle.client("vera"), idle.client("uwe")
        async with feed(mine) as events:
            await events.next()
            await start_run(other, await new_thread(other))
            run = await start_run(mine, await new_thread(mine))
            heard = await events.run_in("pending")
            assert heard["run_id"] == run.rpartition("/")[2]
            (waiting,) = (await events.limits_where("queued", 1))["waiting"]
            assert waiting["run_id"] == run.rpartition("/")[2]

    async def test_hears_that_other_limits_are_in_force(self, idle: RunningService) -> None:
        http = idle.client("tess")
        async with feed(http) as events:
            await events.next()
            operator = idle.client("an operator", groups=["stoa-admins"])
            path = f"/admin/users/{(await http.get('/me')).json()['user_id']}/limits"
            body = {"plan": None, "limits": {"threads": 7}}
            assert (await operator.put(path, json=body)).status_code == 200
            while (frame := await events.next()).event != "limits" or named(frame.data, "threads")[
                "limit"
            ] != 7:
                pass
            assert (await operator.delete(path)).status_code == 200
            while named((await events.next()).data, "threads")["limit"] == 7:
                pass

    async def test_looks_at_nothing_while_nothing_is_under_way(
        self, idle: RunningService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looks = 0

        async def look(*args: Any) -> Any:
            nonlocal looks
            looks += 1
            return await own_limits(*args)

        await until_no_feed_is_open(idle)
        monkeypatch.setattr(own_events, "own_limits", look)
        http = idle.client("sven")
        await start_run(http, await new_thread(http), after_seconds=3600)
        async with feed(http) as events:
            await events.next()
            seen = 0
            async with asyncio.timeout(PATIENCE):
                while seen < looks:  # it may hear late of the run that was made
                    seen = looks
                    await asyncio.sleep(0.5)

    async def test_looks_the_less_often_the_longer_it_takes_to_find_the_runs(
        self, idle: RunningService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rests: asyncio.Queue[float] = asyncio.Queue()

        async def find_slowly(*args: Any) -> Any:
            await asyncio.sleep(0.5)
            return await read_runs(*args)

        def rest(took: float, feeds: int) -> float:
            rests.put_nowait(took)
            return pause_after(took, feeds)

        await until_no_feed_is_open(idle)
        monkeypatch.setattr(own_events, "read_runs", find_slowly)
        monkeypatch.setattr(own_events, "pause_after", rest)
        http = idle.client("tess")
        await start_run(http, await new_thread(http))
        async with feed(http), asyncio.timeout(PATIENCE):
            assert await rests.get() >= 0.5

    async def test_looks_the_less_often_the_more_feeds_the_same_person_has(
        self, idle: RunningService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        told: set[int] = set()
        all_rest = asyncio.Event()

        def rest(took: float, feeds: int) -> float:
            told.add(feeds)
            if feeds == 3:
                all_rest.set()
            return pause_after(took, feeds)

        monkeypatch.setattr(own_events, "pause_after", rest)
        http = idle.client("uwe")
        await start_run(http, await new_thread(http))
        async with feed(http), feed(http), feed(http), feed(idle.client("vera")):
            async with asyncio.timeout(PATIENCE):
                await all_rest.wait()
        assert max(told) == 3
        assert pause_after(0.06, 3) == pytest.approx(3 * pause_after(0.06, 1))

    def test_rests_no_longer_than_a_moment_after_one_look_that_took_long(self) -> None:
        assert pause_after(3.0, 1) == pause_after(0.1, 20) == own_events.LONGEST_REST_SECONDS

    async def test_notices_when_a_scheduled_run_is_due(self, idle: RunningService) -> None:
        http = idle.client("rosa")
        run = await start_run(http, await new_thread(http), after_seconds=MUCH_LATER)
        async with feed(http) as events:
            first = (await events.next()).data
            assert first["runs"]["scheduled"] == 1
            await bring_forward(idle, run)
            await events.limits_where("queued", 1, scheduled=0)

    async def test_is_one_of_the_persons_streams(self, idle: RunningService) -> None:
        http = idle.client("quin")
        await limit(idle, http, streams=1)
        async with feed(http) as events:
            assert named((await events.next()).data, "streams")["used"] == 1
            refused = await http.get("/events")
            assert (refused.status_code, refused.json()["code"]) == (429, "too_many_streams")

    async def test_beats_in_silence_and_ends_with_the_assertion(
        self, idle: RunningService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(live, "BEAT_SECONDS", 0.05)
        expiry = expiry_at_will(monkeypatch)
        http = idle.client("pia", lifetime=SECONDS)
        said = b""
        async with asyncio.timeout(PATIENCE), http.stream("GET", "/events") as response:
            async for piece in response.aiter_raw():
                said += piece
                if said.replace(HEARTBEAT, b"") and said.endswith(HEARTBEAT):
                    expiry.comes()
        assert said.replace(HEARTBEAT, b"").startswith(b"event: limits\n")
        assert said.endswith(HEARTBEAT)


class TestTheFeedOfARunElsewhere:
    async def test_tells_of_runs_that_this_process_did_not_accept(
        self, service: RunningService
    ) -> None:
        web = await service.start_web()
        here, there = service.client("olga"), service.client("olga", url=web.url)
        async with feed(here) as events:
            await events.next()
            run = await start_run(there, await new_thread(there))
            assert (await events.run_in("success"))["run_id"] == run.rpartition("/")[2]
            assert (await read_run(there, run))[-1].data["status"] == "success"
