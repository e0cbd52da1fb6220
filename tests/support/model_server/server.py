"""Runs the scripted model server in a thread, with its own event loop and a real socket."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Self, TypeVar

import uvicorn

from app.dev.ports import without_delay
from tests.support.model_server.application import ModelApplication, Plan
from tests.support.model_server.journal import RecordedRequest
from tests.support.model_server.script import ECHO, Script, Scripter

T = TypeVar("T")
PATIENCE = 30.0
_ROUNDS = 20
"""Of the server's loop: more than it takes to notice that a client has gone."""


class QuickServer(uvicorn.Server):
    """Ends when it is told, not when it looks the next time: many tests have one each."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._told = asyncio.Event()

    def end(self) -> None:
        """End now."""
        self.should_exit = True
        self._told.set()

    async def main_loop(self) -> None:
        """Serve until told."""
        await self._told.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close every connection, whatever is under way on it."""
        for listener in (*self.servers, *(sockets or ())):
            listener.close()
        for connection in tuple(self.server_state.connections):
            connection.transport.close()


def config_of(application: ModelApplication) -> uvicorn.Config:
    """How an application is served: nothing is logged, and what must end is dropped."""
    return uvicorn.Config(
        application.asgi,
        log_config=None,
        log_level="critical",
        access_log=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=0,
    )


def listen(port: int = 0) -> socket.socket:
    """Return a listening socket on loopback."""
    return without_delay(socket.create_server(("127.0.0.1", port), backlog=2048))


class ScriptedModelServer:
    """A model server that does what a test tells it.

    Use it as ``async with ScriptedModelServer() as server``. All methods are for the test's own
    event loop (or thread); other processes reach the same server by its ``url``.
    """

    def __init__(
        self,
        default: Script | Scripter = ECHO,
        *,
        slots: int = 1,
        models: Sequence[str] = ("smollm2",),
        capabilities: Sequence[str] = ("completion", "tools", "thinking"),
        made_for: int = 131_072,
        port: int = 0,
    ) -> None:
        self._plan = Plan(tuple(models), tuple(capabilities), made_for, default)
        self._slots = slots
        self._port = port
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="model-server", daemon=True)

    async def __aenter__(self) -> Self:
        self._socket = listen(self._port)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread.start()
        await asyncio.to_thread(self._ready.wait)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.stop()

    @property
    def requests(self) -> list[RecordedRequest]:
        """Every model call so far, in the order of arrival."""
        return self._application.journal.requests

    @property
    def loads(self) -> int:
        """How often a model was loaded."""
        return self._application.runner.loads

    @property
    def running(self) -> int:
        """How many calls hold a slot now."""
        return self._application.runner.running

    @property
    def most_running(self) -> int:
        """How many calls held a slot at once, at the most."""
        return self._application.runner.most_running

    @property
    def stalled(self) -> int:
        """How many calls are kept waiting now."""
        return sum(
            each.stalled_at is not None
            and each.finished_at is None
            and each.disconnected_at is None
            for each in self.requests
        )

    async def count_stalled(self) -> int:
        """How many calls are kept waiting, without those whose clients have gone by now."""

        async def notice() -> int:
            for _ in range(_ROUNDS):
                await asyncio.sleep(0)
            return self.stalled

        return await self._over_there(notice())

    def enqueue(self, *scripts: Script) -> None:
        """Give the next requests these scripts, in this order."""
        self._plan.queue.extend(scripts)

    def forget_scripts(self) -> None:
        """Give nobody the scripts that nobody has taken."""
        self._plan.queue.clear()

    def answer_with(self, default: Script | Scripter) -> None:
        """Give every request that finds the queue empty this script."""
        self._plan.default = default

    async def wait_for_request(self, n: int = 1) -> RecordedRequest:
        """Return the ``n``-th model call, as soon as it has arrived."""
        return await self._wait_for(n, lambda request: request.received_at)

    async def wait_for_start(self, n: int = 1) -> RecordedRequest:
        """Return the ``n``-th call that got a slot."""
        return await self._wait_for(n, lambda request: request.started_at)

    async def wait_for_stall(self, n: int = 1) -> RecordedRequest:
        """Return the ``n``-th call that stalled."""
        return await self._wait_for(n, lambda request: request.stalled_at)

    async def wait_for_finish(self, n: int = 1) -> RecordedRequest:
        """Return the ``n``-th call that was answered to its end."""
        return await self._wait_for(n, lambda request: request.finished_at)

    async def wait_for_disconnect(self, n: int = 1) -> RecordedRequest:
        """Return the ``n``-th call whose client went away before the end."""
        return await self._wait_for(n, lambda request: request.disconnected_at)

    def release(self, request: RecordedRequest) -> None:
        """Let a stalled call go on."""
        self._loop.call_soon_threadsafe(self._application.journal.release, request)

    async def stop(self) -> None:
        """End the server now; connections are dropped, as when its process is killed."""
        with suppress(RuntimeError):  # it has ended before
            self._loop.call_soon_threadsafe(self._uvicorn.end)
        await asyncio.to_thread(self._thread.join)

    async def _wait_for(
        self, n: int, happened: Callable[[RecordedRequest], float | None]
    ) -> RecordedRequest:
        waiting = self._application.journal.wait_for(n, happened)
        return await self._over_there(asyncio.wait_for(waiting, PATIENCE))

    async def _over_there(self, work: Coroutine[object, object, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        return await asyncio.wrap_future(future)

    def _serve(self) -> None:
        asyncio.run(self._main())

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._application = ModelApplication(self._plan, self._slots)
        self._uvicorn = QuickServer(config_of(self._application))
        # The socket listens already, so a client that comes now only waits a moment.
        self._ready.set()
        await self._uvicorn.serve(sockets=[self._socket])
