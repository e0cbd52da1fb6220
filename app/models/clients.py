"""Every client of Ollama in this process goes through our transports, whoever builds it.

A patch of the library's inside, since operators' graphs build their own ``ChatOllama``: the HTTP
clients that ``ollama`` makes get our transports, and no address that leads anywhere. Pinned to
ollama 0.6; ``tests/integration/models/test_clients.py`` holds it to that.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import httpx
import ollama
from ollama._client import BaseClient

from app.models.scope import current_scope

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.models.scope import RunScope

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
    """Hands calls to the run in whose context they are made."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Make the call.

        Raises:
            ModelError: there is no answer.
        """
        scope = current_scope()
        return await scope.access.send(scope, request.url.path, await request.aread())


class SyncDoor(httpx.BaseTransport):
    """The same for code in threads: the call is made on the event loop, and ends with its run."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Make the call.

        Raises:
            ModelError: there is no answer.
            RuntimeError: this is the event loop's own thread, which it would block.
        """
        scope = current_scope()
        content = request.read()
        answer = _on_the_loop(scope, scope.access.send(scope, request.url.path, content))
        return httpx.Response(
            answer.status_code, headers=answer.headers, stream=_ThreadStream(scope, answer)
        )


class _ThreadStream(httpx.SyncByteStream):
    """An answer, read from a thread."""

    def __init__(self, scope: RunScope, answer: httpx.Response) -> None:
        self._scope = scope
        self._answer = answer
        self._pieces = answer.aiter_raw()

    def __iter__(self) -> Iterator[bytes]:
        while (piece := _on_the_loop(self._scope, self._next())) is not None:
            yield piece

    def close(self) -> None:
        _on_the_loop(self._scope, self._answer.aclose())

    async def _next(self) -> bytes | None:
        return await anext(self._pieces, None)


def _on_the_loop(scope: RunScope, work: Any) -> Any:  # noqa: ANN401 - a coroutine, its result
    try:
        running = asyncio.get_running_loop()
    except RuntimeError:
        running = None
    if running is scope.loop:
        work.close()
        raise RuntimeError("Call the model with `await model.ainvoke(…)` or `model.astream(…)`")
    return asyncio.run_coroutine_threadsafe(work, scope.loop).result()
