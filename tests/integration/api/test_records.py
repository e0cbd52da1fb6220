"""What is recorded about a request: one line each, and nothing that a person wrote."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg
import httpx
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from structlog.testing import capture_logs

from app.api.application import create_app
from app.api.frames import RunFrames
from app.api.metrics import MeasuredAnswers
from app.runs import threads
from tenancy.errors import ThreadNotFound
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service

CANARY = "canary-7f1e of my heart"


class TestAnUnexpectedError:
    async def test_has_one_record_and_a_fixed_answer(self, postgres: PostgresServer) -> None:
        async with running_service(postgres, worker=False) as service:
            http = service.client("witness")
            await http.get("/me")
            await _execute(service, "ALTER TABLE threads RENAME TO threads_gone")
            with capture_logs() as lines:
                answer = await http.post("/threads", json={"metadata": {"said": CANARY}})
            await _execute(service, "ALTER TABLE threads_gone RENAME TO threads")
        assert answer.status_code == 500
        request_id = answer.headers["x-request-id"]
        assert answer.json() == {
            "type": "about:blank",
            "title": "Internal Server Error",
            "status": 500,
            "detail": "Something went wrong on our side.",
            "code": "internal",
            "request_id": request_id,
        }
        (record,) = [
            line
            for line in lines
            if line["log_level"] == "error" and line.get("request_id") == request_id
        ]
        assert record["route"] == "/threads"
        assert record["error"].endswith("Error")
        assert record["tenant"]
        assert record["stage"] == "handling"
        assert any("thread_routes.py" in line for line in record["stack"])
        assert CANARY not in json.dumps(lines, default=str)

    async def test_in_the_middle_of_an_answer_has_one_record_and_breaks_the_answer_off(
        self, service: RunningService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        frames = RunFrames.all

        async def all_but_the_rest(reader: RunFrames) -> AsyncIterator[bytes]:
            async with aclosing(frames(reader)) as whole:
                yield await anext(whole)
                raise RuntimeError(CANARY)

        monkeypatch.setattr(RunFrames, "all", all_but_the_rest)
        http = service.client("witness of a stream")
        thread = (await http.post("/threads", json={})).json()["thread_id"]
        http.headers["X-Request-Id"] = request_id = uuid4().hex
        said = {"messages": [{"role": "user", "content": CANARY}]}
        body = {"assistant_id": "agent", "input": said}
        with capture_logs() as everything:
            async with http.stream("POST", f"/threads/{thread}/runs/stream", json=body) as stream:
                assert stream.status_code == 200
                with pytest.raises(httpx.RemoteProtocolError):
                    await stream.aread()
            lines = await answered(everything, request_id)
        record, access = lines
        assert (record["event"], record["stage"]) == ("request failed", "answering")
        assert (record["error"], record["log_level"]) == ("RuntimeError", "error")
        assert (access["status"], access["cut_by"]) == (200, "server")
        assert CANARY not in json.dumps(everything, default=str)


class TestAClientThatGoes:
    async def test_before_its_answer_is_routine(
        self, service: RunningService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked, gone = asyncio.Event(), asyncio.Event()

        async def held(*given: Any) -> None:
            asked.set()
            await gone.wait()
            raise ThreadNotFound

        monkeypatch.setattr(threads, "get_thread", held)
        request_id = uuid4().hex
        with capture_logs() as everything:
            async with connected(service, "hasty", f"GET /threads/{uuid4()}", request_id):
                await asked.wait()
            gone.set()
            (line,) = await answered(everything, request_id)
        assert (line["status"], line["log_level"]) == (499, "info")
        assert line["route"] == "/threads/{thread_id}"

    async def test_in_the_middle_of_what_it_sends_is_routine(self, service: RunningService) -> None:
        request_id = uuid4().hex
        with capture_logs() as everything:
            async with connected(
                service, "cut off", "POST /threads", request_id, "Content-Length: 100"
            ) as writer:
                writer.write(b'{"metadata":')
                await writer.drain()
            (line,) = await answered(everything, request_id)
        assert (line["status"], line["log_level"]) == (499, "info")

    async def test_does_not_hide_a_failure_of_ours(
        self, service: RunningService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked, gone = asyncio.Event(), asyncio.Event()

        async def broken(*given: Any) -> None:
            asked.set()
            await gone.wait()
            raise RuntimeError(CANARY)

        monkeypatch.setattr(threads, "get_thread", broken)
        request_id = uuid4().hex
        with capture_logs() as everything:
            async with connected(service, "unlucky", f"GET /threads/{uuid4()}", request_id):
                await asked.wait()
            gone.set()
            lines = await answered(everything, request_id)
        assert [(line["event"], line.get("status")) for line in lines] == [
            ("request failed", None),
            ("request", 500),
        ]


class TestWhatIsCounted:
    async def test_is_how_long_answers_took_to_begin_by_route_and_status(
        self, service: RunningService
    ) -> None:
        registry = CollectorRegistry()
        app = create_app(service.web.services, MeasuredAnswers(registry))
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://stoa") as http:
            await http.get("/ok")
            await http.get(f"/{CANARY}")
            for method in ("PROPFIND", "UNLOCK", "CANARY"):
                await http.request(method, "/ok")
        text = generate_latest(registry).decode()
        name = "stoa_http_request_seconds_count"
        assert f'{name}{{method="GET",route="/ok",status="200"}} 1.0' in text
        assert f'{name}{{method="GET",route="unmatched",status="404"}} 1.0' in text
        assert f'{name}{{method="_OTHER",route="/ok",status="405"}} 3.0' in text
        assert "canary" not in text.lower()


class TestTheAccessLog:
    async def test_holds_nothing_that_a_person_wrote(self, service: RunningService) -> None:
        http = service.client("secretive", name=CANARY)
        http.headers["X-Request-Id"] = request_id = uuid4().hex
        with capture_logs() as lines:
            thread = (await http.post("/threads", json={"metadata": {CANARY: CANARY}})).json()
            path = f"/threads/{thread['thread_id']}"
            body: dict[str, Any] = {
                "assistant_id": "agent",
                "input": {"messages": [{"role": "user", "content": CANARY}]},
                "context": {"a": CANARY},
            }
            answers = [
                await http.post(f"{path}/runs/wait", json=body),
                await http.post(f"{path}/runs", json={**body, CANARY: 1}),
                await http.get(path, params={"q": CANARY}),
                await http.get(f"/threads/{CANARY}"),
                await http.get(f"/{CANARY}"),
            ]
        assert [answer.status_code for answer in answers] == [200, 422, 422, 422, 404]
        assert all(CANARY not in answer.text for answer in answers[1:])
        # A stream that a test before has left may end meanwhile.
        requests = [
            line
            for line in lines
            if line["event"] == "request" and line["request_id"] == request_id
        ]
        assert len(requests) == 1 + len(answers)
        assert {line["route"] for line in requests} == {
            "/threads",
            "/threads/{thread_id}",
            "/threads/{thread_id}/runs",
            "/threads/{thread_id}/runs/wait",
            "unmatched",
        }
        said = json.dumps(lines, default=str)
        assert "canary" not in said
        assert thread["thread_id"] not in said

    async def test_takes_a_sane_request_id_and_replaces_others(
        self, service: RunningService
    ) -> None:
        http = service.client(None)
        given = uuid4().hex
        assert (await http.get("/ok", headers={"X-Request-Id": given})).headers[
            "x-request-id"
        ] == given
        for odd in (
            "short",
            "x" * 200,
            "with spaces in it",
            "a-secret-key-8f2c",
            "<script>alert(1)</script>",
        ):
            answer = await http.get("/ok", headers={"X-Request-Id": odd})
            assert len(answer.headers["x-request-id"]) == 32


async def _execute(service: RunningService, statement: str) -> None:
    connection = await asyncpg.connect(service.postgres.dsn("owner", service.database))
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def of_request(everything: list[Any], request_id: str) -> list[dict[str, Any]]:
    """Those lines that are one request's."""
    return [line for line in everything if line.get("request_id") == request_id]


async def answered(everything: list[Any], request_id: str) -> list[dict[str, Any]]:
    """The lines of a request, once the access log has it: that is the last."""
    async with asyncio.timeout(60):
        while True:
            lines = of_request(everything, request_id)
            if lines and lines[-1]["event"] == "request":
                return lines
            await asyncio.sleep(0.01)


@asynccontextmanager
async def connected(
    service: RunningService, person: str, request: str, request_id: str, *more: str
) -> AsyncIterator[asyncio.StreamWriter]:
    """A request on a connection of its own; at the end of the block its client has gone."""
    where = urlsplit(service.url)
    _, writer = await asyncio.open_connection(where.hostname, where.port)
    port = writer.get_extra_info("sockname")[1]
    headers = {**service.issuer.headers(person), "Host": "stoa", "X-Request-Id": request_id}
    fields = [f"{name}: {value}" for name, value in headers.items()]
    kind = "Content-Type: application/json"
    lines = [f"{request} HTTP/1.1", *fields, kind, *more, "", ""]
    writer.write("\r\n".join(lines).encode())
    try:
        yield writer
    finally:
        writer.close()
    state: Any = service.web.server.server_state
    async with asyncio.timeout(60):
        while any(each.client == ("127.0.0.1", port) for each in state.connections):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
