"""What a web process does once it hears that somebody's state was changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast
from uuid import uuid4

import pytest

from app.api import departures
from app.api.departures import Departures
from app.api.streams import OpenStreams
from tenancy.identity.directory import UserDirectory
from tenancy.principal import UserId


class _Directory:
    """Knows whether its people leave, and who was forgotten."""

    def __init__(self, *, leaving: bool) -> None:
        self.forgotten: list[UserId] = []
        self.asked = asyncio.Event()
        self._leaving = leaving

    async def is_leaving(self, _user_id: UserId) -> bool:
        self.asked.set()
        return self._leaving

    def forget(self, user_id: UserId) -> None:
        self.forgotten.append(user_id)


@asynccontextmanager
async def hearing(directory: _Directory, streams: OpenStreams) -> AsyncIterator[Departures]:
    heard = Departures(cast("UserDirectory", directory), streams)
    try:
        yield heard
    finally:
        await heard.aclose()


@asynccontextmanager
async def reading(streams: OpenStreams, user_id: UserId) -> AsyncIterator[asyncio.Task[None]]:
    """A stream of somebody's, and word of when it has to end."""

    async def until_closing() -> None:
        await streams.closing_for(user_id)()

    end = asyncio.create_task(until_closing())
    await asyncio.sleep(0)
    try:
        yield end
    finally:
        end.cancel()


class TestAStream:
    async def test_that_is_open_ends_and_its_reader_is_looked_up_anew(self) -> None:
        user_id, streams = UserId(uuid4()), OpenStreams()
        directory = _Directory(leaving=False)
        async with reading(streams, user_id) as end, hearing(directory, streams) as heard:
            heard.hear(str(user_id))
            await end
        assert directory.forgotten == [user_id]

    @pytest.mark.parametrize("leaving", [False, True], ids=["suspended", "leaving"])
    async def test_that_begins_just_afterwards_ends_if_its_reader_leaves(
        self, monkeypatch: pytest.MonkeyPatch, leaving: bool
    ) -> None:
        monkeypatch.setattr(departures, "AGAIN_SECONDS", 0.0)
        user_id, streams = UserId(uuid4()), OpenStreams()
        directory = _Directory(leaving=leaving)
        async with hearing(directory, streams) as heard:
            heard.hear(str(user_id))
            async with reading(streams, user_id) as end:
                await directory.asked.wait()
                if leaving:
                    await end
                else:
                    for _ in range(10):  # as many turns as an end would take, and more
                        await asyncio.sleep(0)
                    assert not end.done()
