"""A thread's stream: its runs' events one after the other, from where a reader left it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
import pytest

from tests.acceptance.conftest import Running
from tests.support.frames import Frame, follow, new_thread, read_run, start_run
from tests.support.model_server import Script

PATIENCE = 30
ROUNDS = 3
AT_ONCE_SECONDS = 3.0
"""Sooner than a look that nobody asked for; on a busy machine, one of a few is."""


@dataclass
class Told:
    """One frame of a thread's stream."""

    event: str
    data: str
    id: str

    @classmethod
    def of(cls, frame: Frame) -> Told:
        return cls(*(frame._field(name) for name in ("event", "data", "id")))


class Reader:
    """Reads a thread's stream until somebody has heard enough."""

    def __init__(self, frames: AsyncIterator[Frame]) -> None:
        self._frames = frames

    async def until_done(self, runs: int) -> list[Told]:
        """What comes until so many runs have ended."""
        told: list[Told] = []
        async with asyncio.timeout(PATIENCE):
            while sum(each.event == "run_done" for each in told) < runs:
                told.append(Told.of(await anext(self._frames)))
        return told

    async def next(self) -> Told:
        async with asyncio.timeout(PATIENCE):
            return Told.of(await anext(self._frames))


@asynccontextmanager
async def thread_stream(
    client: httpx.AsyncClient, thread_id: str, after: str | None = None, mode: str = ""
) -> AsyncIterator[Reader]:
    headers = {} if after is None else {"Last-Event-ID": after}
    params = {"stream_mode": mode} if mode else {}
    path = f"/threads/{thread_id}/stream"
    async with client.stream("GET", path, headers=headers, params=params) as response:
        assert response.status_code == 200, await response.aread()
        yield Reader(aiter(follow(response)))


async def said_by(client: httpx.AsyncClient, *locations: str) -> list[tuple[str, str]]:
    """What the streams of the runs themselves say, up to their ends."""
    said: list[tuple[str, str]] = []
    for location in locations:
        frames = await read_run(client, location)
        said += [(each.event, Told.of(each).data) for each in frames[:-1]]
    return said


def events(told: list[Told]) -> list[tuple[str, str]]:
    return [(each.event, each.data) for each in told if each.event != "run_done"]


class TestAThreadsStream:
    async def test_tells_of_runs_one_after_the_other_and_of_those_to_come(
        self, running: Running
    ) -> None:
        client = running.deployment.http("thread reader", running.first)
        thread_id = await new_thread(client)
        async with thread_stream(client, thread_id) as reader:
            first = await start_run(client, thread_id, "One")
            second = await start_run(client, thread_id, "Two")
            told = await reader.until_done(2)
            third = await start_run(client, thread_id, "Three")
            told += await reader.until_done(1)
        assert events(told) == await said_by(client, first, second, third)
        done = [each.data for each in told if each.event == "run_done"]
        assert [
            location.rpartition("/")[2] in data
            for location, data in zip((first, second, third), done, strict=True)
        ] == [True] * 3
        assert all('"status":"success"' in data for data in done)

    async def test_hears_at_once_of_a_run_that_another_process_accepted(
        self, running: Running
    ) -> None:
        client = running.deployment.http("quick reader", running.first)
        elsewhere = running.deployment.http("quick reader", running.second)
        thread_id = await new_thread(client)
        clock, waited = asyncio.get_running_loop().time, []
        async with thread_stream(client, thread_id) as reader:
            for _ in range(ROUNDS):
                begun = clock()
                await start_run(elsewhere, thread_id)
                assert (await reader.next()).event == "metadata"
                waited.append(clock() - begun)
                await reader.until_done(1)
        assert min(waited) < AT_ONCE_SECONDS

    async def test_goes_on_behind_any_event_on_any_process(self, running: Running) -> None:
        client = running.deployment.http("thread wanderer", running.first)
        elsewhere = running.deployment.http("thread wanderer", running.second)
        thread_id = await new_thread(client)
        for text in ("One", "Two"):
            location = await start_run(client, thread_id, text)
            await client.get(f"{location}/join")
        async with thread_stream(client, thread_id, "-1") as reader:
            whole = await reader.until_done(2)
        ids = [each.id for each in whole]
        assert len(set(ids)) == len(ids)
        for place, after in enumerate(ids[:-1]):
            rest = whole[place + 1 :]
            async with thread_stream(elsewhere, thread_id, after) as reader:
                runs = sum(each.event == "run_done" for each in rest)
                assert await reader.until_done(runs) == rest
        async with thread_stream(elsewhere, thread_id, ids[-1]) as reader:
            location = await start_run(client, thread_id, "Three")
            assert events(await reader.until_done(1)) == await said_by(client, location)

    async def test_begins_with_the_run_that_is_open(self, running: Running) -> None:
        deployment = running.deployment
        client = deployment.http("thread joiner", running.first)
        thread_id = await new_thread(client)
        await client.get(f"{await start_run(client, thread_id)}/join")
        stalls = deployment.stalls
        deployment.model.enqueue(Script(text="one two", stall_at=1))
        location = await start_run(client, thread_id)
        request = await deployment.model.wait_for_stall(stalls + 1)
        async with thread_stream(client, thread_id) as reader:
            deployment.model.release(request)
            assert events(await reader.until_done(1)) == await said_by(client, location)

    @pytest.mark.parametrize(
        ("mode", "names"),
        [
            ("lifecycle", {"metadata", "run_done"}),
            ("state_update", {"metadata", "values", "run_done"}),
            ("lifecycle,run_modes", {"metadata", "values", "messages", "run_done"}),
        ],
    )
    async def test_tells_only_what_is_wanted(
        self, running: Running, mode: str, names: set[str]
    ) -> None:
        client = running.deployment.http(f"thread {mode}", running.first)
        thread_id = await new_thread(client)
        await client.get(f"{await start_run(client, thread_id)}/join")
        async with thread_stream(client, thread_id, "-1", mode) as reader:
            assert {each.event for each in await reader.until_done(1)} == names

    async def test_says_that_a_run_is_gone_and_goes_on(self, running: Running) -> None:
        client = running.deployment.http("thread gap", running.first)
        thread_id = await new_thread(client)
        await client.get(f"{await start_run(client, thread_id)}/join")
        state = (await client.get(f"/threads/{thread_id}/state")).json()["values"]
        gone = "00000000-0000-4000-8000-000000000000:7"
        async with thread_stream(client, thread_id, gone) as reader:
            gap, values = await reader.next(), await reader.next()
            assert (gap.event, values.event) == ("gap", "values")
            assert httpx.Response(200, content=values.data).json() == state
            location = await start_run(client, thread_id)
            assert events(await reader.until_done(1)) == await said_by(client, location)

    async def test_ends_when_its_thread_is_deleted(self, running: Running) -> None:
        client = running.deployment.http("thread deleter", running.first)
        thread_id = await new_thread(client)
        async with thread_stream(client, thread_id) as reader:
            await client.delete(f"/threads/{thread_id}")
            assert (await reader.next()).event == "error"


class TestSomebodyElse:
    async def test_finds_no_such_thread(self, running: Running) -> None:
        owner = running.deployment.http("thread owner", running.first)
        stranger = running.deployment.http("thread stranger", running.first)
        thread_id = await new_thread(owner)
        answer = await stranger.get(f"/threads/{thread_id}/stream")
        assert answer.status_code == 404

    @pytest.mark.parametrize("position", ["7", "x:1", "-2"])
    async def test_is_refused_a_place_that_means_nothing(
        self, running: Running, position: str
    ) -> None:
        client = running.deployment.http("thread nonsense", running.first)
        thread_id = await new_thread(client)
        answer = await client.get(
            f"/threads/{thread_id}/stream", headers={"Last-Event-ID": position}
        )
        assert answer.status_code == 400


class TestLangGraphsOwnClient:
    async def test_joins_a_threads_stream(self, running: Running) -> None:
        client = running.deployment.http("thread sdk", running.first)
        sdk = running.deployment.sdk("thread sdk", running.first)
        thread_id = await new_thread(client)
        location = await start_run(client, thread_id)
        seen = []
        async with asyncio.timeout(PATIENCE):
            stream = await sdk.threads.join_stream(thread_id, last_event_id="-1")
            async for part in stream:
                seen.append(part.event)
                if part.event == "run_done":
                    break
        assert seen == [*(name for name, _ in await said_by(client, location)), "run_done"]
