"""A stream read over connections that break, from processes that die: nothing lost or doubled."""

from __future__ import annotations

import asyncio
import random
from itertools import cycle

import httpx
import pytest

from tests.acceptance.conftest import Running
from tests.support.frames import HEARTBEAT, Frame, Frames, logged, new_thread, read_run, start_run
from tests.support.model_server import Script

WORDS = 240
MIDDLE = WORDS // 2
DROPS = 20
LONGEST_READ = 1_500
TOKENS_PER_SECOND = 100
"""Slow enough for many flushes until the middle."""


async def read_a_little(
    client: httpx.AsyncClient, location: str, after: int, size: int
) -> list[Frame]:
    """Read so many bytes, or all there are, and drop the connection, wherever in a frame that is.

    How many there are at a time depends on how the worker came to store them.
    """
    frames, seen = Frames(), bytearray()
    async with client.stream(
        "GET", f"{location}/stream", headers={"Last-Event-ID": str(after)}
    ) as response:
        assert response.status_code == 200
        async for piece in response.aiter_raw():
            seen += piece[: size - len(seen)]
            if len(seen) >= size or piece == HEARTBEAT:
                break
    return frames.whole(bytes(seen))


class Wanderer:
    """Reads a run bit by bit, each time from where the last bit ended."""

    def __init__(self, location: str, seed: int) -> None:
        self.location = location
        self.random = random.Random(seed)
        self.frames: list[Frame] = []
        self.drops = 0

    @property
    def last_id(self) -> int:
        return next((each.id for each in reversed(self.frames) if each.id is not None), 0)

    async def wander(self, client: httpx.AsyncClient) -> None:
        size = self.random.randrange(1, LONGEST_READ)
        self.frames += await read_a_little(client, self.location, self.last_id, size)
        self.drops += 1

    async def arrive(self, client: httpx.AsyncClient) -> None:
        self.frames += await read_run(client, self.location, self.last_id)


class TestAReaderThatLosesItsConnectionTwentyTimes:
    @pytest.mark.parametrize("seed", [7, 2026])
    async def test_reads_the_same_bytes_as_one_that_is_left_alone(
        self, running: Running, seed: int
    ) -> None:
        deployment = running.deployment
        doomed = await deployment.start_web()
        lasting = deployment.http(f"wanderer {seed}", running.first)
        dying = deployment.http(f"wanderer {seed}", doomed)
        words = " ".join(f"word{number}" for number in range(WORDS))
        stalls = deployment.stalls
        deployment.model.enqueue(
            Script(text=words, stall_at=MIDDLE, decode_tokens_per_second=TOKENS_PER_SECOND)
        )
        location = await start_run(
            lasting,
            await new_thread(lasting),
            modes=("values", "updates", "messages-tuple", "messages"),
        )
        undisturbed = asyncio.create_task(read_run(lasting, location))
        wanderer = Wanderer(location, seed)
        turns = cycle([lasting, dying])
        request = await deployment.model.wait_for_stall(stalls + 1)
        while wanderer.drops < DROPS // 2:
            await wanderer.wander(next(turns))

        await doomed.kill()
        with pytest.raises(httpx.TransportError):
            await wanderer.wander(dying)
        back = await deployment.start_web(port=int(doomed.url.rpartition(":")[2]))
        assert back.url == doomed.url
        deployment.model.release(request)
        while wanderer.drops < DROPS:
            await wanderer.wander(next(turns))
        await wanderer.arrive(next(turns))

        whole = await undisturbed
        assert whole[-1].event == "end"
        assert whole[-1].data["status"] == "success"
        assert logged(wanderer.frames) == logged(whole)
        assert wanderer.frames[-1] == whole[-1]
        ids = [frame.id for frame in whole if frame.id is not None]
        assert ids == list(range(1, len(ids) + 1))
        assert wanderer.last_id == ids[-1]


class TestTheListeningConnectionIsCut:
    async def test_the_stream_still_comes_to_its_end(self, running: Running) -> None:
        deployment = running.deployment
        client = deployment.http("listener", running.first)
        stalls = deployment.stalls
        deployment.model.enqueue(Script(text="one two three four", stall_at=2))
        location = await start_run(client, await new_thread(client))
        reading = asyncio.create_task(read_run(client, location))
        request = await deployment.model.wait_for_stall(stalls + 1)
        async with deployment.superuser() as connection:
            cut = await connection.fetch(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND application_name = 'stoa signals'"
            )
        assert len(cut) >= 2
        deployment.model.release(request)
        frames = await reading
        assert frames[-1].data["status"] == "success"
        values = [frame for frame in frames if frame.event == "values"]
        assert values[-1].data["messages"][-1]["content"] == "one two three four"
        # Each process tells of something once more, which has it find that its connection is gone:
        # what it told of just then is only heard of with the next look.
        for web in (running.first, running.second):
            other = deployment.http("listener", web)
            await read_run(other, await start_run(other, await new_thread(other)))
