"""A search for mentions through the real route, while its sources are slow, failing or unwanted."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx
import pytest
from structlog.testing import capture_logs

from app.mentions.refs import Kind, Ref
from app.mentions.search import SECONDS, MentionSearch
from app.mentions.sources import Asked, Found, SourceFailed, Status
from tests.support.service import RunningService

Line = MutableMapping[str, Any]

PATIENCE = 60.0
LONG = 600.0
QUERY = "canary sentence of mine"
TOLD = "tells what was asked and should not"


@dataclass
class Shelf:
    """A source that answers as a test says, and tells when it was asked and when cancelled."""

    source: str
    failure: Exception | None = None
    hangs: bool = False
    provider: str = "stoa"
    kind: Kind = "thread"
    display_name: str = "Chats"
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled_at: float = 0.0

    async def find(self, asked: Asked) -> Sequence[Found]:
        self.asked.set()
        try:
            if self.hangs:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled_at = time.perf_counter()
            self.cancelled.set()
            raise
        if self.failure is not None:
            raise self.failure
        return [Found(Ref("thread", self.source), "A title")]


@pytest.fixture
def shelves(
    idle: RunningService, monkeypatch: pytest.MonkeyPatch
) -> Callable[[list[Shelf]], list[Shelf]]:
    """Has the running service search these and nothing else."""

    def put(chosen: list[Shelf]) -> list[Shelf]:
        monkeypatch.setattr(idle.web.services.mentions.search, "_sources", tuple(chosen))
        return chosen

    return put


def a_request(http: httpx.AsyncClient) -> str:
    http.headers["X-Request-Id"] = request_id = uuid4().hex
    return request_id


async def answered(lines: Sequence[Line], request_id: str) -> list[Line]:
    """What was recorded of a request, once it is over."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = [line for line in lines if line.get("request_id") == request_id]
            if any(line["event"] == "request" for line in found):
                return found
            await asyncio.sleep(0.01)


class TestASearch:
    async def test_is_answered_in_time_though_one_source_hangs_and_others_fail(
        self, idle: RunningService, shelves: Callable[[list[Shelf]], list[Shelf]]
    ) -> None:
        http = idle.client("waits-for-sources")
        shelves([Shelf("well")])
        usual = 0.0
        for _ in range(2):  # the first one of a process is slower
            began = time.perf_counter()
            assert (await http.post("/mentions/search", json={"q": QUERY})).status_code == 200
            usual = time.perf_counter() - began
        chosen = shelves(
            [
                Shelf("hangs", hangs=True),
                Shelf("fails", RuntimeError(TOLD)),
                Shelf("limited", SourceFailed("rate_limited")),
                Shelf("closed", SourceFailed("unauthorized")),
                Shelf("absent", SourceFailed("not_configured")),
                Shelf("well"),
            ]
        )
        with capture_logs() as lines:
            began = time.perf_counter()
            answer = await http.post("/mentions/search", json={"q": QUERY})
            took = time.perf_counter() - began
        print(  # noqa: T201
            f"a search with one source that hangs took {took * 1000:.0f} ms,"
            f" with none {usual * 1000:.0f} ms"
        )
        assert answer.status_code == 200
        statuses: list[Status] = ["timeout", "upstream_error", "rate_limited", "unauthorized"]
        assert [group["status"] for group in answer.json()["groups"]] == [
            *statuses,
            "not_configured",
            "ok",
        ]
        assert [len(group["results"]) for group in answer.json()["groups"]] == [0, 0, 0, 0, 0, 1]
        assert SECONDS <= took < PATIENCE
        assert chosen[0].cancelled.is_set()
        told = [line for line in lines if line["event"] == "a source of mentions failed"]
        assert sorted((line["source"], line["status"]) for line in told) == sorted(
            (shelf.source, status) for shelf, status in zip(chosen, statuses, strict=False)
        )
        assert {line["log_level"] for line in told} == {"warning"}
        assert {(line["provider"], line["kind"]) for line in told} == {("stoa", "thread")}
        assert QUERY not in json.dumps(lines, default=str)
        assert TOLD not in json.dumps(lines, default=str) + answer.text

    async def test_ends_with_the_client_who_asked_for_it(
        self,
        idle: RunningService,
        shelves: Callable[[list[Shelf]], list[Shelf]],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        chosen = shelves([Shelf(f"s{n}", hangs=True) for n in range(3)])
        monkeypatch.setattr(idle.web.services.mentions.search, "_seconds", LONG)
        http = idle.client("goes-away")
        await http.get("/me")
        request_id = a_request(http)
        with capture_logs() as lines:
            asking = asyncio.create_task(http.post("/mentions/search", json={"q": QUERY}))
            for shelf in chosen:
                await asyncio.wait_for(shelf.asked.wait(), PATIENCE)
            left = time.perf_counter()
            asking.cancel()
            for shelf in chosen:
                await asyncio.wait_for(shelf.cancelled.wait(), PATIENCE)
            last = max(shelf.cancelled_at for shelf in chosen)
            print(f"every source was cancelled after {(last - left) * 1000:.1f} ms")  # noqa: T201
            (line,) = await answered(lines, request_id)
        assert (line["status"], line["log_level"]) == (499, "info")
        assert line["route"] == "/mentions/search"
        assert [line for line in lines if line["event"] == "a source of mentions failed"] == []
        assert QUERY not in json.dumps(lines, default=str)

    async def test_that_breaks_has_one_record_and_a_fixed_answer(
        self, idle: RunningService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def broken(search: MentionSearch, asked: Asked) -> Any:
            raise RuntimeError(f"{TOLD} {asked.query}")

        monkeypatch.setattr(MentionSearch, "find", broken)
        http = idle.client("meets-a-fault")
        await http.get("/me")
        request_id = a_request(http)
        with capture_logs() as everything:
            answer = await http.post("/mentions/search", json={"q": QUERY})
            lines = await answered(everything, request_id)
        assert answer.status_code == 500
        assert answer.json() == {
            "type": "about:blank",
            "title": "Internal Server Error",
            "status": 500,
            "detail": "Something went wrong on our side.",
            "code": "internal",
            "request_id": request_id,
        }
        (record,) = [line for line in lines if line["log_level"] == "error"]
        assert (record["route"], record["error"]) == ("/mentions/search", "RuntimeError")
        assert record["stage"] == "handling"
        said = json.dumps(everything, default=str)
        assert QUERY not in said
        assert TOLD not in said
