"""Where a reader may begin, what it gets in silence, and what happens when it does not read."""

from __future__ import annotations

import asyncio
import socket
from urllib.parse import urlsplit

from tests.acceptance.conftest import Running
from tests.support.frames import (
    HEARTBEAT,
    Frame,
    Frames,
    logged,
    new_thread,
    read_run,
    start_run,
)
from tests.support.model_server import Script
from tests.support.processes import PATIENCE, StoaProcess

MEGABYTE = 1024 * 1024
MOST_HEARTBEATS = 6
"""Of so many one comes in time, however busy the machine is."""


class TestAfterTheEnd:
    async def test_the_whole_stream_can_be_read_from_any_web_process(
        self, running: Running
    ) -> None:
        client = running.deployment.http("late", running.first)
        location = await start_run(client, await new_thread(client))
        live = await read_run(client, location)
        elsewhere = running.deployment.http("late", running.second)
        assert await read_run(elsewhere, location) == live
        assert await read_run(elsewhere, location, after="-1") == live
        assert await read_run(elsewhere, location, after=live[0].id) == live[1:]
        last = live[-2].id
        assert await read_run(elsewhere, location, after=last) == live[-1:]

    async def test_an_id_beyond_the_last_one_is_answered_with_a_gap_and_the_present_state(
        self, running: Running
    ) -> None:
        client = running.deployment.http("ahead", running.first)
        location = await start_run(client, await new_thread(client))
        live = await read_run(client, location)
        last = live[-2].id
        gap, state, end = await read_run(client, location, after=9_999)
        assert (gap.event, gap.id) == ("gap", last)
        assert gap.data == {"asked_after": 9_999, "continues_after": last}
        finished = [frame for frame in live if frame.event == "values"][-1]
        assert (state.event, state.id, state.data) == ("values", None, finished.data)
        assert end == live[-1]


class TestInSilence:
    async def test_a_heartbeat_comes_every_five_seconds(self, running: Running) -> None:
        deployment = running.deployment
        client = deployment.http("patient", running.first)
        stalls = deployment.stalls
        deployment.model.enqueue(Script(text="one two", stall_at=1))
        location = await start_run(client, await new_thread(client), modes=("messages-tuple",))
        request = await deployment.model.wait_for_stall(stalls + 1)
        clock = asyncio.get_running_loop().time
        seen, silence = b"", 0.0
        async with client.stream("GET", f"{location}/stream") as response:
            pieces = response.aiter_raw()
            # On a busy machine one may be heard late, and so soon before the next.
            while seen.count(HEARTBEAT) < MOST_HEARTBEATS and not 4 < silence < 8:
                silent_since = clock()
                piece = await anext(pieces)
                silence = clock() - silent_since if piece == HEARTBEAT else 0.0
                seen += piece
            deployment.model.release(request)
            async for piece in pieces:
                seen += piece
        assert 4 < silence < 8
        assert Frames().whole(seen)[-1].event == "end"


class TestAReaderThatDoesNotRead:
    EVENTS = 2_500
    SIZE = 8 * 1024
    READERS = 8

    async def test_slows_neither_the_run_nor_others_and_costs_bounded_memory(
        self, running: Running
    ) -> None:
        client = running.deployment.http("flooded", running.first)
        location = await start_run(
            client,
            await new_thread(client),
            assistant="flood",
            graph_input={"events": self.EVENTS, "size": self.SIZE},
            modes=("custom",),
        )
        authorization = running.deployment.issuer.headers("flooded")["Authorization"]
        idle = [
            await asyncio.to_thread(_ask, running.first, location, authorization)
            for _ in range(self.READERS)
        ]
        try:
            whole = await read_run(client, location)
            assert whole[-1].data["status"] == "success"
            custom = [frame for frame in whole if frame.event == "custom"]
            assert [frame.data["number"] for frame in custom] == list(range(self.EVENTS))
            streamed = len(logged(whole))
            assert streamed > 16 * MEGABYTE
            # Against the other web process, which did none of this.
            extra = running.first.memory - running.second.memory
            assert extra < self.READERS * streamed / 2
            slow = await asyncio.to_thread(_read_on, idle[0])
            assert slow == whole
        finally:
            for each in idle:
                each.close()


def _ask(web: StoaProcess, location: str, authorization: str) -> socket.socket:
    """Send the request for a stream, and read nothing."""
    address = urlsplit(web.url)
    assert address.hostname
    assert address.port
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect((address.hostname, address.port))
    connection.sendall(
        f"GET {location}/stream HTTP/1.1\r\nHost: {address.netloc}\r\n"
        f"Authorization: {authorization}\r\nConnection: close\r\n\r\n".encode()
    )
    return connection


def _read_on(connection: socket.socket) -> list[Frame]:
    """Read the answer after all: the same stream."""
    connection.settimeout(PATIENCE)
    answer = bytearray()
    while piece := connection.recv(65_536):
        answer += piece
    head, _, body = bytes(answer).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    return Frames().whole(_dechunked(body))


def _dechunked(body: bytes) -> bytes:
    content, rest = bytearray(), memoryview(body)
    while True:
        line_end = bytes(rest[:20]).index(b"\r\n")
        size = int(bytes(rest[:line_end]), 16)
        if size == 0:
            return bytes(content)
        begin = line_end + 2
        content += rest[begin : begin + size]
        rest = rest[begin + size + 2 :]
