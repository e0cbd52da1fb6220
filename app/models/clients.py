"""Every client of Ollama in this process goes through our transports, whoever builds it.

A patch of the library's inside, since operators' graphs build their own ``ChatOllama``: the HTTP
clients that ``ollama`` makes get our transports, and no address that leads anywhere. Pinned to
ollama 0.6; ``tests/integration/models/test_clients.py`` holds it to that.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, TypeVar

import httpx
import ollama
from ollama._client import BaseClient

from app.models.call import require_model_call
from app.models.errors import ModelCallOutsideRun
from app.models.scope import current_scope

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Iterator
    from concurrent.futures import Future

    from app.models.answer import Answer
    from app.models.scope import RunScope

T = TypeVar("T")

NOWHERE = "http://127.0.0.1:9"
"""The discard port: whatever gets around the transports is refused."""
_ORIGINAL = BaseClient.__init__


def patch_clients() -> None:
    """Put our transports into every client that is built from now on. Once is enough."""
    if BaseClient.__init__ is _with_our_transport:
        return
    os.environ["OLLAMA_HOST"] = NOWHERE
    BaseClient.__init__ = _with_our_transport  # type: ignore[method-assign]
    # The one that `ollama.chat` and its like use was made when the library was imported.
    ollama._client.close()  # type: ignore[no-untyped-call]  # noqa: SLF001
    ollama._client.__init__()  # type: ignore[misc]  # noqa: SLF001


def _with_our_transport(
    self: BaseClient,
    client: type[httpx.Client | httpx.AsyncClient],
    host: str | None = None,  # noqa: ARG001 - where calls go is the scheduler's to say
    *,
    follow_redirects: bool = True,  # noqa: ARG001 - as above
    timeout: object = None,  # noqa: ARG001 - the transport has its own
    headers: object = None,  # noqa: ARG001 - nothing of a graph's is passed on
    **_others: Any,  # noqa: ANN401
) -> None:
    transport = AsyncDoor() if client is httpx.AsyncClient else SyncDoor()
    _ORIGINAL(
        self,
        client,
        NOWHERE,
        follow_redirects=False,
        timeout=None,
        transport=transport,
        trust_env=False,
    )


class AsyncDoor(httpx.AsyncBaseTransport):
    """Hands calls to the run in whose context they are made.

    They are made on the run's event loop. Code in a thread may have a loop of its own.
    """

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Make the call.

        Raises:
            ModelError: there is no answer.
        """
        require_model_call(request.method, request.url.path)
        scope = current_scope()
        sending = scope.access.send(scope, request.url.path, await request.aread())
        return _response(_Body(await _across(scope, sending)))


class SyncDoor(httpx.BaseTransport):
    """The same for code in threads: the call is made on the event loop, and ends with its run."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Make the call.

        Raises:
            ModelError: there is no answer.
            RuntimeError: this is the event loop's own thread, which it would block.
        """
        require_model_call(request.method, request.url.path)
        scope = current_scope()
        sending = scope.access.send(scope, request.url.path, request.read())
        return _response(_ThreadBody(_from_thread(scope, sending)))


class _Body(httpx.AsyncByteStream):
    """An answer, read from a coroutine."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (lines := await _across(self._answer.scope, self._answer.read())) is not None:
            yield lines

    async def aclose(self) -> None:
        await _across(self._answer.scope, self._answer.aclose())


class _ThreadBody(httpx.SyncByteStream):
    """An answer, read from a thread."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        while (lines := _from_thread(self._answer.scope, self._answer.read())) is not None:
            yield lines

    def close(self) -> None:
        _from_thread(self._answer.scope, self._answer.aclose())


def _response(body: _Body | _ThreadBody) -> httpx.Response:
    return httpx.Response(200, headers={"Content-Type": "application/x-ndjson"}, stream=body)


async def _across(scope: RunScope, work: Coroutine[Any, Any, T]) -> T:
    """Do it on the run's event loop, wherever this is."""
    if asyncio.get_running_loop() is scope.loop:
        return await work
    return await asyncio.wrap_future(_hand_over(scope, work))


def _from_thread(scope: RunScope, work: Coroutine[Any, Any, T]) -> T:
    try:
        running = asyncio.get_running_loop()
    except RuntimeError:
        running = None
    if running is scope.loop:
        work.close()
        raise RuntimeError("Call the model with `await model.ainvoke(…)` or `model.astream(…)`")
    return _hand_over(scope, work).result()


def _hand_over(scope: RunScope, work: Coroutine[Any, Any, T]) -> Future[T]:
    try:
        return asyncio.run_coroutine_threadsafe(work, scope.loop)
    except RuntimeError:  # the loop is closed: a thread has outlived the whole worker
        work.close()
        raise ModelCallOutsideRun from None
