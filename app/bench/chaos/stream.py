"""Reading a run's stream: every event once, in order, and then its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    import httpx

    from app.bench.chaos.promises import Promise, Promises


class Broken(Exception):
    """The stream stopped before the run's end: whoever reads it goes on elsewhere."""


class Reading:
    """Takes one response apart, and writes down what came."""

    def __init__(self, promise: Promise, promises: Promises) -> None:
        self._promise = promise
        self._promises = promises

    async def read(self, response: httpx.Response) -> None:
        """Return once the run has ended.

        Raises:
            Broken: the response ended before that.
        """
        rest = b""
        async for piece in response.aiter_raw():
            *frames, rest = (rest + piece).split(b"\n\n")
            for frame in frames:
                if self._take(frame):
                    return
        raise Broken

    def _take(self, frame: bytes) -> bool:
        """Write a frame down; True for the last one."""
        fields = dict(line.split(b": ", 1) for line in frame.split(b"\n") if b": " in line)
        event = fields.get(b"event", b"").decode()
        if event == "end":
            self._promise.told.add(orjson.loads(fields[b"data"])["status"])
            return True
        if b"id" in fields:
            self._take_stored(int(fields[b"id"]), event, frame)
        elif event == "error":
            self._breach("a stream failed", fields[b"data"].decode())
            return True
        return False

    def _take_stored(self, number: int, event: str, frame: bytes) -> None:
        last = self._promise.last_seen
        if event == "gap":
            self._promise.gaps.add(number)
            is_next = number > last
        else:
            self._promise.frames[number] = frame
            is_next = number == last + 1
        if not is_next:
            self._breach("a stream is not contiguous", f"{number} after {last}")

    def _breach(self, rule: str, where: str) -> None:
        self._promises.breach(rule, f"run {self._promise.run_id}: {where}")
