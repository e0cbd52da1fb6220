"""What is recorded about a request: one line each, and nothing that a person wrote."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import asyncpg
from structlog.testing import capture_logs

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
        assert any("thread_routes.py" in line for line in record["stack"])
        assert CANARY not in json.dumps(lines, default=str)


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
