"""Streams and waits: what ends them, and what their clients see."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from httpx_sse import ServerSentEvent, aconnect_sse

from app.api import live
from tests.support.expiry import SECONDS, expiry_at_will
from tests.support.model_server import Script
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service

PATIENCE = 30


def run_of(text: str = "Hello", **fields: object) -> dict[str, object]:
    messages = [{"type": "human", "content": text}]
    return {"assistant_id": "agent", "input": {"messages": messages}, **fields}


@pytest.fixture(scope="module")
async def queue(postgres: PostgresServer) -> AsyncIterator[RunningService]:
    """A service whose runs stay in the queue: there is no worker."""
    async with running_service(postgres, worker=False, max_streams_per_user=2) as running:
        yield running


async def new_thread(http: httpx.AsyncClient) -> str:
    return str((await http.post("/threads", json={})).json()["thread_id"])


async def new_run(http: httpx.AsyncClient, **fields: object) -> str:
    """Accept a run and return its path."""
    thread = await new_thread(http)
    run = await http.post(f"/threads/{thread}/runs", json=run_of(**fields))  # type: ignore[arg-type]
    return f"/threads/{thread}/runs/{run.json()['run_id']}"


async def events(http: httpx.AsyncClient, path: str, **headers: str) -> list[ServerSentEvent]:
    async with aconnect_sse(http, "GET", path, headers=headers) as source:
        return [event async for event in source.aiter_sse()]


async def until_no_stream_is_open(service: RunningService) -> None:
    async with asyncio.timeout(PATIENCE):
        while service.web.services.streams.count():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)


class TestAStream:
    async def test_says_where_to_read_it_again(self, service: RunningService) -> None:
        http = service.client("where")
        thread = await new_thread(http)
        async with http.stream("POST", f"/threads/{thread}/runs/stream", json=run_of()) as stream:
            body = (await stream.aread()).decode()
        location = stream.headers["content-location"]
        assert location.startswith(f"/threads/{thread}/runs/")
        assert stream.headers["location"] == f"{location}/stream"
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.headers["cache-control"] == "no-store"
        assert stream.headers["x-accel-buffering"] == "no"
        assert (await http.get(stream.headers["location"])).text == body
        assert (await http.get(f"{location}/stream", headers={"Last-Event-ID": "-1"})).text == body

    async def test_is_filtered_by_mode(self, service: RunningService) -> None:
        http = service.client("filtered")
        path = await new_run(http, stream_mode=["values", "updates", "messages", "messages-tuple"])
        everything = {event.event for event in await events(http, f"{path}/stream")}
        assert {"values", "updates", "messages", "messages/complete"} <= everything
        for mode, names in {
            "updates": {"updates"},
            "messages-tuple": {"messages"},
            "messages": {"messages/metadata", "messages/partial", "messages/complete"},
        }.items():
            found = await events(http, f"{path}/stream?stream_mode={mode}")
            assert {event.event for event in found} - {"metadata", "end"} <= names
        # The Python SDK sends an absent mode as an empty one.
        empty = await events(http, f"{path}/stream?cancel_on_disconnect=false&stream_mode=")
        assert {event.event for event in empty} == everything

    async def test_asked_for_after_its_end_signals_the_gap(self, service: RunningService) -> None:
        http = service.client("beyond")
        path = await new_run(http)
        whole = await events(http, f"{path}/stream")
        last = whole[-2].id
        assert [
            e.event for e in await events(http, f"{path}/stream", **{"Last-Event-ID": last})
        ] == ["end"]
        gap, values, end = await events(http, f"{path}/stream", **{"Last-Event-ID": "999"})
        assert (gap.event, json.loads(gap.data), gap.id) == (
            "gap",
            {"asked_after": 999, "continues_after": int(last)},
            last,
        )
        assert len(json.loads(values.data)["messages"]) == 2
        assert end.event == "end"

    async def test_beats_in_silence(
        self, queue: RunningService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(live, "BEAT_SECONDS", 0.01)
        http = queue.client("patient")
        async with http.stream("GET", f"{await new_run(http)}/stream") as stream:
            assert await anext(stream.aiter_text()) == ": heartbeat\n\n"
        async with http.stream("GET", f"{await new_run(http)}/join") as stream:
            assert await anext(stream.aiter_text()) == "\n"
        await until_no_stream_is_open(queue)

    async def test_ends_when_its_client_goes(self, queue: RunningService) -> None:
        http = queue.client("leaver")
        async with http.stream("GET", f"{await new_run(http)}/stream"):
            assert queue.web.services.streams.count() == 1
        await until_no_stream_is_open(queue)

    async def test_is_one_of_a_few_per_person(self, queue: RunningService) -> None:
        http, other = queue.client("collector"), queue.client("modest")
        path = await new_run(http)
        async with http.stream("GET", f"{path}/stream"), http.stream("GET", f"{path}/join"):
            refused = await http.get(f"{path}/stream")
            assert (refused.status_code, refused.json()["code"]) == (429, "too_many_streams")
            thread = path.split("/runs/")[0]
            refused = await http.post(f"{thread}/runs/stream", json=run_of())
            assert refused.status_code == 429
            assert len((await http.get(f"{thread}/runs")).json()) == 1
            async with other.stream("GET", f"{await new_run(other)}/stream") as stream:
                assert stream.status_code == 200
        await until_no_stream_is_open(queue)

    async def test_ends_with_the_assertion(self, queue: RunningService) -> None:
        path = await new_run(queue.client("guest"))
        expired = queue.client("guest", lifetime=-5, iat=int(time.time()) - 60)
        async with asyncio.timeout(PATIENCE):
            # Within the leeway an expired assertion still opens a stream, which ends at once.
            assert await events(expired, f"{path}/stream") == []
            with pytest.raises(httpx.RemoteProtocolError):
                await expired.get(f"{path}/join")

    async def test_that_is_not_read_ends_with_the_assertion_all_the_same(
        self, service: RunningService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        http = service.client("deaf")
        text = "a" * 900_000
        messages = [{"type": "human", "content": text} for _ in range(8)]
        path = await new_run(http, input={"messages": messages})
        assert (await http.get(f"{path}/join")).status_code == 200
        expiry = expiry_at_will(monkeypatch)
        deaf = [await _ask_and_not_read(service, f"{path}/{what}") for what in ("stream", "join")]
        async with asyncio.timeout(PATIENCE):
            for reader, _ in deaf:
                assert b" 200 " in await reader.readline()
                await reader.readexactly(len(text) // 10)  # in the middle of what is large
        assert expiry.awaited == len(deaf)
        expiry.comes()
        await until_no_stream_is_open(service)
        for reader, writer in deaf:
            with contextlib.suppress(ConnectionResetError):
                answered = await reader.read()
                assert len(answered) < 8 * len(text), "what was not taken by then is dropped"
                assert not answered.endswith(b"0\r\n\r\n")
            writer.close()

    async def test_of_a_deleted_thread_says_so(self, queue: RunningService) -> None:
        http = queue.client("deleter")
        path = await new_run(http)
        async with aconnect_sse(http, "GET", f"{path}/stream") as source:
            reading = asyncio.create_task(_all(source.aiter_sse()))
            await http.delete(path.split("/runs/")[0])
            queue.web.services.tail._wake(None)
            async with asyncio.timeout(PATIENCE):
                (event,) = await reading
        assert (event.event, json.loads(event.data)["error"]) == ("error", "run_not_found")


class TestAWait:
    async def test_answers_with_the_final_values(self, service: RunningService) -> None:
        http = service.client("waiter")
        thread = await new_thread(http)
        waited = await http.post(f"/threads/{thread}/runs/wait", json=run_of())
        assert [m["type"] for m in waited.json()["messages"]] == ["human", "ai"]
        assert waited.headers["location"] == f"{waited.headers['content-location']}/join"
        assert (await http.get(waited.headers["location"])).json() == waited.json()
        by_updates = await new_run(http, stream_mode="updates")
        assert len((await http.get(f"{by_updates}/join")).json()["messages"]) == 2

    async def test_of_a_run_that_failed_says_why(self, service: RunningService) -> None:
        http = service.client("unlucky")
        service.model.enqueue(Script(status=404))
        thread = await new_thread(http)
        waited = await http.post(f"/threads/{thread}/runs/wait", json=run_of())
        error = waited.json()["__error__"]
        assert error["error"] == "model_missing"
        (run,) = (await http.get(f"/threads/{thread}/runs")).json()
        assert run["status"] == "error"
        assert run["error"] == {"code": error["error"], "message": error["message"]}
        assert (await http.get(f"/threads/{thread}")).json()["status"] == "error"
        await service.model_is_back()


class TestAShutdown:
    async def test_ends_streams_and_breaks_waits(self, queue: RunningService) -> None:
        http = queue.client("survivor")
        path = await new_run(http)
        web = await queue.start_web()
        there = queue.client("survivor", url=web.url)
        async with aconnect_sse(there, "GET", f"{path}/stream") as source:
            reading = asyncio.create_task(_all(source.aiter_sse()))
            waiting = asyncio.create_task(there.get(f"{path}/join"))
            async with asyncio.timeout(PATIENCE):
                while web.services.streams.count() < 2:  # noqa: ASYNC110 - nothing tells
                    await asyncio.sleep(0.01)
                await web.stop()
                assert await reading == []
                with pytest.raises(httpx.RemoteProtocolError):
                    await waiting


async def _ask_and_not_read(
    service: RunningService, path: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Ask for a stream by an assertion that expires at will, on a connection that takes little."""
    to = urlsplit(service.url)
    taking_little = socket.socket()
    taking_little.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    taking_little.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(taking_little, (to.hostname, to.port))
    reader, writer = await asyncio.open_connection(sock=taking_little, limit=1024)
    headers = service.issuer.headers("deaf", lifetime=SECONDS)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {to.netloc}\r\n{lines}\r\n".encode())
    return reader, writer


async def _all(source: AsyncIterator[Any]) -> list[Any]:
    return [each async for each in source]
