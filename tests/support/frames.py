"""A stream as bytes: server-sent events read without any client library in between."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx

HEARTBEAT = b": heartbeat\n\n"


@dataclass(frozen=True)
class Frame:
    """One frame, exactly as it arrived."""

    raw: bytes

    @property
    def event(self) -> str:
        return self._field("event")

    @property
    def data(self) -> Any:
        return json.loads(self._field("data"))

    @property
    def id(self) -> int | None:
        """Its place in the log; frames outside the log have none."""
        text = self._field("id")
        return int(text) if text else None

    def _field(self, name: str) -> str:
        prefix = f"{name}: "
        lines = self.raw.decode().split("\n")
        return next((line[len(prefix) :] for line in lines if line.startswith(prefix)), "")


@dataclass
class Frames:
    """Puts frames together from pieces; what is not whole yet is kept, or lost with the reader."""

    _rest: bytes = field(default=b"")

    def whole(self, piece: bytes) -> list[Frame]:
        """The frames that are whole now; heartbeats are none."""
        *done, self._rest = (self._rest + piece).split(b"\n\n")
        raw = [each + b"\n\n" for each in done]
        return [Frame(each) for each in raw if each != HEARTBEAT]


async def follow(response: httpx.Response) -> AsyncIterator[Frame]:
    """Yield frames as they arrive."""
    frames = Frames()
    async for piece in response.aiter_raw():
        for frame in frames.whole(piece):
            yield frame


async def read_run(
    client: httpx.AsyncClient, location: str, after: int | str | None = None
) -> list[Frame]:
    """Read a run's stream to its end."""
    headers = {} if after is None else {"Last-Event-ID": str(after)}
    async with client.stream("GET", f"{location}/stream", headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        return [frame async for frame in follow(response)]


def logged(frames: list[Frame]) -> bytes:
    """The bytes of the frames that have a place in the log."""
    return b"".join(frame.raw for frame in frames if frame.id is not None)


async def new_thread(client: httpx.AsyncClient) -> str:
    """Create a thread; returns its id."""
    answer = await client.post("/threads", json={})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["thread_id"])


async def start_run(
    client: httpx.AsyncClient,
    thread_id: str,
    text: str = "Hello",
    *,
    modes: tuple[str, ...] = ("values", "messages-tuple"),
    assistant: str = "agent",
    graph_input: dict[str, Any] | None = None,
    **fields: Any,
) -> str:
    """Create a run without reading it, with more fields if given; returns where it is."""
    said = graph_input or {"messages": [{"role": "user", "content": text}]}
    body = {"assistant_id": assistant, "input": said, "stream_mode": list(modes), **fields}
    answer = await client.post(f"/threads/{thread_id}/runs", json=body)
    assert answer.status_code == 200, answer.text
    return str(answer.headers["content-location"])
