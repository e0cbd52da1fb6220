"""What the scripted model server saw, and when."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.support.model_server.script import Body


@dataclass(eq=False)
class RecordedRequest:
    """One model call. Times are ``time.monotonic()``, the same in all processes of a machine."""

    number: int
    path: str
    body: Body
    headers: dict[str, str]
    received_at: float = field(default_factory=time.monotonic)
    started_at: float | None = None
    first_byte_at: float | None = None
    stalled_at: float | None = None
    finished_at: float | None = None
    disconnected_at: float | None = None
    tokens_sent: int = 0
    _released: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def options(self) -> dict[str, object]:
        """The request's ``options``."""
        options = self.body.get("options")
        return options if isinstance(options, dict) else {}

    def summary(self) -> dict[str, object]:
        """Return everything as plain data, for the control route."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


class Journal:
    """All model calls in the order of their arrival. Lives in the server's own event loop."""

    def __init__(self) -> None:
        self.requests: list[RecordedRequest] = []
        self._changed = asyncio.Condition()

    def open(self, path: str, body: Body, headers: dict[str, str]) -> RecordedRequest:
        """Write down a request that has just arrived."""
        request = RecordedRequest(len(self.requests) + 1, path, body, headers)
        self.requests.append(request)
        return request

    async def announce(self) -> None:
        """Wake those who wait for something to be written down."""
        async with self._changed:
            self._changed.notify_all()

    async def wait_for(
        self, n: int, happened: Callable[[RecordedRequest], float | None]
    ) -> RecordedRequest:
        """Return the request that was the ``n``-th one to which it happened."""

        def found() -> list[tuple[float, RecordedRequest]]:
            times = ((happened(request), request) for request in self.requests)
            return [(at, request) for at, request in times if at is not None]

        async with self._changed:
            await self._changed.wait_for(lambda: len(found()) >= n)
        return sorted(found(), key=lambda pair: (pair[0], pair[1].number))[n - 1][1]

    def release(self, request: RecordedRequest) -> None:
        """Let a stalled request go on (or not stall at all)."""
        request._released.set()

    async def stall(self, request: RecordedRequest) -> None:
        """Hold the request until it is released."""
        request.stalled_at = time.monotonic()
        await self.announce()
        await request._released.wait()
