"""However much a server says unasked, it is heard at a pace of ours."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import httpx2
import mcp_types
import pytest
from mcp.shared.message import SessionMessage

from app.tools.pool import pacing
from app.tools.pool.http import Answers, AnswerTooLong
from app.tools.pool.offered import MOST_RELISTS, RELISTS_PER_SECOND
from app.tools.pool.pacing import MOST_NODES, Pace, PacedMessages, paced_lines

PING = SessionMessage(mcp_types.JSONRPCRequest(jsonrpc="2.0", id=1, method="ping"))
NOTE = SessionMessage(mcp_types.JSONRPCNotification(jsonrpc="2.0", method="notifications/x"))
ANSWER = SessionMessage(mcp_types.JSONRPCResponse(jsonrpc="2.0", id=1, result={}))


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited, by a clock that stands still."""
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    loop = SimpleNamespace(time=lambda: 0.0)
    still = SimpleNamespace(sleep=sleep, get_running_loop=lambda: loop)
    monkeypatch.setattr(pacing, "asyncio", still)
    return waited


class Flood:
    """Messages that are all there at once."""

    def __init__(self, message: SessionMessage, count: int) -> None:
        self._message = message
        self._left = count

    async def __anext__(self) -> SessionMessage:
        if self._left == 0:
            raise StopAsyncIteration
        self._left -= 1
        return self._message


async def chunks(*each: bytes) -> AsyncIterator[bytes]:
    for chunk in each:
        yield chunk


class TestMessagesOfAServer:
    @pytest.mark.parametrize(
        ("message", "seconds"),
        [(PING, 50.0), (NOTE, 0.0), (ANSWER, 0.0)],
        ids=["ping", "note", "answer"],
    )
    async def test_that_want_a_reply_cost_more_than_notes_and_answers_nothing(
        self, waits: list[float], message: SessionMessage, seconds: float
    ) -> None:
        stream: Any = Flood(message, 200)
        heard = [each async for each in PacedMessages(stream)]
        assert len(heard) == 200
        assert max(waits, default=0.0) == pytest.approx(seconds)


class TestListingAnew:
    def test_is_done_some_times_in_a_row_and_seldom_then(self, waits: list[float]) -> None:
        pace = Pace(RELISTS_PER_SECOND, MOST_RELISTS)
        owed = [pace.owed(1) for _ in range(12)]
        assert [max(0, round(each)) for each in owed] == [0] * 10 + [30, 60]
        assert waits == []


class TestLinesOfAStream:
    async def test_are_heard_whole_and_piece_by_piece_as_they_become_many(
        self, waits: list[float]
    ) -> None:
        said = b":\n" * 32_768
        pieces = [piece async for piece in paced_lines(chunks(said, b"data: {}\n\n"))]
        assert b"".join(pieces) == said + b"data: {}\n\n"
        assert max(len(piece) for piece in pieces) <= 1024
        assert max(waits) == pytest.approx((32_770 - 20_000) / 1000)

    async def test_cost_nothing_where_a_long_answer_is_one_line(self, waits: list[float]) -> None:
        long = b"data: " + b"x" * 1_000_000 + b"\n\n"
        assert [piece async for piece in paced_lines(chunks(long))] == [long]
        assert waits == []


class TestAnAnswerThatWouldBecomeMillionsOfObjects:
    @pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
    async def test_is_not_read(self, kind: str) -> None:
        assert await read(kind, b"data: [" + b"{}," * MOST_NODES + b"{}]") == "too long"

    @pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
    async def test_but_one_that_is_only_long_is(self, kind: str) -> None:
        assert await read(kind, b"data: " + b"x" * 10_000_000) == "read"

    async def test_nor_are_many_events_taken_for_one(self) -> None:
        events = b"data: [" + b"{}," * 1000 + b"{}]\n\n"
        assert await read("text/event-stream", *[events] * 300) == "read"


async def read(kind: str, *said: bytes) -> str:
    """Read an answer as connections do; what comes of it."""
    told: list[str] = []

    def send(_request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"Content-Type": kind}, content=chunks(*said))

    def make(*_: Any, **__: Any) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=httpx2.MockTransport(send))

    answers = Answers(lambda _response: None, lambda: told.append("too long"))
    async with answers.client(make, {}) as client:
        with suppress(AnswerTooLong):
            await client.get("https://far.example/mcp")
            told.append("read")
    return told[0]
