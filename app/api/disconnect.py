"""Work that is worth nothing without its client: it ends when the client goes away.

The framework does not tell a handler, so the work is raced against the connection.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from tenancy.errors import StoaError

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from starlette.requests import Request
    from starlette.types import Receive

T = TypeVar("T")


class ClientGone(StoaError):
    """Whoever asked went away before there was an answer. Nobody is left to read this."""

    code = "client_closed_request"
    message = "The client has gone."


async def while_client_waits(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Do the work; cancel it, and whatever it has begun, when the client goes away.

    The request's body has to be read before.

    Raises:
        ClientGone: the client went first.
    """
    working = asyncio.create_task(work, name="work of a request")
    gone = asyncio.create_task(disconnected(request.receive), name="client of a request")
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientGone
    finally:
        for task in (working, gone):
            task.cancel()
        await asyncio.gather(working, gone, return_exceptions=True)


async def disconnected(receive: Receive) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
