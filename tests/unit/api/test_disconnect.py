"""Work that is done for a client ends with it, and with whoever waits for it."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from starlette.requests import Request
from starlette.types import Message

from app.api.disconnect import ClientGone, while_client_waits


class Client:
    """The other end of a request: it waits until it is told to go."""

    def __init__(self) -> None:
        self.goes = asyncio.Event()
        self.heard_to_the_end = asyncio.Event()
        self.request = Request({"type": "http"}, self._receive)

    async def _receive(self) -> Message:
        try:
            await self.goes.wait()
        finally:
            self.heard_to_the_end.set()
        return {"type": "http.disconnect"}


class Work:
    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.was_cancelled = False

    async def for_ever(self) -> str:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        raise AssertionError


async def fail() -> str:
    raise LookupError


class TestWork:
    async def test_is_done_for_a_client_that_waits(self) -> None:
        client = Client()
        assert await while_client_waits(client.request, asyncio.sleep(0, "done")) == "done"
        assert client.heard_to_the_end.is_set()

    async def test_fails_as_it_does(self) -> None:
        client = Client()
        with pytest.raises(LookupError):
            await while_client_waits(client.request, cast("Any", fail()))
        assert client.heard_to_the_end.is_set()

    async def test_ends_with_the_client(self) -> None:
        client, work = Client(), Work()
        waiting = asyncio.create_task(while_client_waits(client.request, work.for_ever()))
        await work.begun.wait()
        client.goes.set()
        with pytest.raises(ClientGone):
            await waiting
        assert work.was_cancelled

    async def test_ends_with_whoever_waits_for_it(self) -> None:
        client, work = Client(), Work()
        waiting = asyncio.create_task(while_client_waits(client.request, work.for_ever()))
        await work.begun.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert work.was_cancelled
        assert client.heard_to_the_end.is_set()
