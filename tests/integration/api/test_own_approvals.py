"""A person's own feed tells of what waits for their word, in whichever process that changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from app.api import own_events
from tests.integration.api.approving import asked, asking_service, note
from tests.integration.api.test_own_events import PATIENCE, Feed, feed
from tests.support.frames import read_run, start_run
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService


@pytest.fixture(scope="module")
async def service(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningService]:
    async with asking_service(postgres, tmp_path_factory.mktemp("feeds")) as running:
        yield running


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_events, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(own_events, "pause_after", lambda _took, _feeds: 0.05)


async def told(events: Feed, number: int = 1) -> list[dict[str, Any]]:
    """The next things that are told of what waits."""
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(PATIENCE):
        while len(found) < number:
            frame = await events.next()
            if frame.event == "approval":
                found.append(frame.data)
    return found


class TestTheFeed:
    async def test_tells_what_is_asked_and_how_it_is_decided_one_by_one(
        self, service: RunningService
    ) -> None:
        client = service.client(uuid4().hex)
        async with feed(client) as events:
            await events.next()
            waiting = await asked(service, note("a"), note("b"), client=client)
            open_ones = sorted(await told(events, 2), key=lambda each: str(each["arguments"]))
            assert open_ones == await waiting.open()
            first, second = open_ones
            decided = (await waiting.decide(first, "approve")).json()
            assert await told(events) == [decided]
            decided = (await waiting.decide(second, "reject")).json()
            assert await told(events) == [decided]
        assert await waiting.ended() == "success"

    async def test_tells_of_what_was_decided_at_another_process(
        self, service: RunningService
    ) -> None:
        web = await service.start_web()
        name = uuid4().hex
        waiting = await asked(service, client=service.client(name))
        shown = await waiting.only()
        async with feed(service.client(name, url=web.url)) as events:
            assert (await events.next()).event == "limits"
            decided = (await waiting.decide(shown, "approve")).json()
            assert await told(events) == [decided]
        assert await waiting.ended() == "success"

    async def test_tells_of_what_is_not_asked_any_more(self, service: RunningService) -> None:
        waiting = await asked(service)
        shown = await waiting.only()
        async with feed(waiting.client) as events:
            await events.next()
            instead = await start_run(waiting.client, shown["thread_id"], "Never mind")
            (taken_back,) = await told(events)
            assert taken_back["approval_id"] == shown["approval_id"]
            assert taken_back["state"] == "superseded"
        await read_run(waiting.client, instead)

    async def test_tells_of_what_is_gone_with_its_thread(self, service: RunningService) -> None:
        waiting = await asked(service)
        shown = await waiting.only()
        async with feed(waiting.client) as events:
            await events.next()
            await waiting.client.delete(waiting.thread)
            assert await told(events) == [{"approval_id": shown["approval_id"], "removed": True}]

    async def test_hears_nothing_of_what_others_are_asked(self, service: RunningService) -> None:
        mine = service.client(uuid4().hex)
        async with feed(mine) as events:
            await events.next()
            other = await asked(service)
            await other.decide(await other.only(), "reject")
            await other.ended()
            waiting = await asked(service, client=mine)
            assert [each["run_id"] for each in await told(events)] == [waiting.run_id]
        await mine.delete(waiting.thread)
