"""The service behind the gateway: a real server that can be watched and held back."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import uvicorn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator

    from starlette.types import Receive, Scope, Send


@dataclass
class Service:
    """Notes what it gets, and answers by path."""

    url: str = ""
    keys: bytes = b""
    """What it publishes."""
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    requests: int = 0
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    client_gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer by path."""
        self.requests += 1
        self.headers = list(scope["headers"])
        answers = {
            "/stream": self._stream,
            "/silent": self._silent,
            "/broken": self._broken,
            "/.well-known/jwks.json": self._published,
        }
        await answers.get(scope["path"], self._echo)(scope, receive, send)

    async def _echo(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.client_gone.set()
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
            self.begun.set()
        target = scope["raw_path"] + (b"?" + scope["query_string"]) * bool(scope["query_string"])
        seen = {"method": scope["method"], "target": target.decode(), "body": body.decode()}
        status = 304 if scope["path"] == "/unchanged" else 200
        headers = [
            (b"content-type", b"application/json"),
            (b"set-cookie", b"a=1"),
            (b"set-cookie", b"b=2"),
            (b"keep-alive", b"timeout=5"),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        content = b"" if status == 304 else json.dumps(seen).encode()
        await send({"type": "http.response.body", "body": content})

    async def _published(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": self.keys})

    async def _stream(self, _scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True})
        going = asyncio.create_task(self.go_on.wait())
        leaving = asyncio.create_task(self._until_gone(receive))
        await asyncio.wait({going, leaving}, return_when=asyncio.FIRST_COMPLETED)
        going.cancel()
        leaving.cancel()
        await send({"type": "http.response.body", "body": b"data: 2\n\n"})

    async def _silent(self, _scope: Scope, receive: Receive, _send: Send) -> None:
        self.begun.set()
        await self._until_gone(receive)

    async def _broken(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})

    async def _until_gone(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.client_gone.set()

    def forget(self) -> None:
        """Start anew."""
        self.headers, self.requests = [], 0
        for event in (self.begun, self.go_on, self.client_gone):
            event.clear()

    def lines(self, name: str) -> list[str]:
        """Return the values of every line whose name is spelt like this one."""
        return [
            value.decode()
            for key, value in self.headers
            if key.decode().lower().replace("_", "-") == name.lower()
        ]


class _QuietServer(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave the test process's own signals alone."""
        yield


@asynccontextmanager
async def serving() -> AsyncIterator[Service]:
    """Run the service on a port of its own."""
    service = Service()
    listener = socket.create_server(("127.0.0.1", 0))
    service.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    config = uvicorn.Config(
        service, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=1
    )
    server = _QuietServer(config)
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield service
    finally:
        server.should_exit = True
        await running
        listener.close()
