"""The watch over the parts that all share: what it says while the database does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from app.runtime import watch as watching
from app.runtime.watch import RuntimeWatch
from app.settings import Settings
from tenancy.database.engine import DatabaseUnavailable
from tenancy.scheduler.components import Component

PATIENCE = 30
WORKERS = Component("workers", "available", None, None, 5)
Answer = list[Component] | Exception | None


def database(version: int) -> Component:
    return Component("database", "available", None, None, version)


class Answering:
    """A database that answers a look when it is told what; None: it does not."""

    def __init__(self) -> None:
        self.answers: asyncio.Queue[Answer] = asyncio.Queue()
        self.is_closed = False

    async def look(self) -> list[Component]:
        """The next answer."""
        match await self.answers.get():
            case None:
                await asyncio.Event().wait()
                raise AssertionError
            case Exception() as error:
                raise error
            case found:
                return found

    async def close(self) -> None:
        """Note it."""
        self.is_closed = True


class Watched:
    """A watch, the answers that it gets, and what a listener has found whenever it was called."""

    def __init__(self, watch: RuntimeWatch, answering: Answering) -> None:
        self.watch = watch
        self.heard: list[tuple[Component, ...]] = []
        self._answering = answering

    def hear(self) -> None:
        """Read what is told."""
        self.heard.append(self.watch.parts)

    async def look(self, answer: Answer) -> tuple[Component, ...]:
        """What it says once it has looked, and was answered so."""
        looked = self.watch._looked.wait()
        self._answering.answers.put_nowait(answer)
        async with asyncio.timeout(PATIENCE):
            await looked
        return self.watch.parts


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "LOOK_SECONDS", 0)


@asynccontextmanager
async def watched(*first: Component) -> AsyncIterator[Watched]:
    answering = Answering()
    settings: dict[str, Any] = {"dispatch_database_url": "postgresql://d@h/d"}
    watch = RuntimeWatch(Settings(**settings), answering)
    answering.answers.put_nowait(list(first))
    await watch.start()
    try:
        found = Watched(watch, answering)
        with watch.listening(found.hear):
            yield found
    finally:
        await watch.stop()
        assert answering.is_closed


class TestADatabaseThatDoesNotAnswer:
    async def test_is_said_to_be_away_beside_what_was_known_last(self) -> None:
        async with watched(database(100), WORKERS) as found:
            away, *others = await found.look(DatabaseUnavailable())
            assert (away.status, away.reason, away.version) == (
                *("unavailable", "database_unreachable", 101),
            )
            assert others == [WORKERS]
            assert not found.watch.has_database

    async def test_is_told_once_and_since_when(self) -> None:
        async with watched(database(100)) as found:
            with capture_logs() as logs:
                first = await found.look(DatabaseUnavailable())
                assert await found.look(DatabaseUnavailable()) == first
            assert found.heard == [first]
            assert [each["event"] for each in logs] == ["the database does not answer"]

    async def test_is_back_with_a_higher_version(self) -> None:
        async with watched(database(100)) as found:
            (away,) = await found.look(DatabaseUnavailable())
            (back,) = await found.look([database(500)])
            assert (back.status, back.version) == ("available", 500)
            assert found.heard == [(away,), (back,)]

    async def test_is_back_with_a_higher_version_though_its_clock_was_set_back(self) -> None:
        async with watched(database(100)) as found:
            (away,) = await found.look(DatabaseUnavailable())
            (back,) = await found.look([database(3)])
            assert back.version > away.version
            (away_again,) = await found.look(DatabaseUnavailable())
            assert away_again.version > back.version

    async def test_is_not_waited_for_without_an_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(watching, "ANSWER_SECONDS", 0.01)
        async with watched(database(100)) as found:
            (away,) = await found.look(None)
            assert away.status == "unavailable"

    async def test_is_away_from_the_beginning(self) -> None:
        async with watched() as found:
            (away,) = await found.look(DatabaseUnavailable())
            assert (away.status, away.version) == ("unavailable", 1)


class TestAListener:
    async def test_hears_of_what_stands_otherwise_and_of_nothing_else(self) -> None:
        worse = Component("workers", "unavailable", "no_workers", None, 6)
        async with watched(database(100), WORKERS) as found:
            await found.look([database(200), WORKERS])
            assert found.heard == []
            await found.look([database(300), worse])
            assert found.heard == [(database(300), worse)]

    async def test_hears_nothing_once_it_has_gone(self) -> None:
        async with watched(database(100), WORKERS) as found:
            with found.watch.listening(pytest.fail):
                pass
            await found.look([database(200)])
            assert found.heard == [(database(200),)]

    async def test_is_served_though_a_look_broke(self) -> None:
        async with watched(database(100), WORKERS) as found:
            with capture_logs() as logs:
                await found.look(ValueError("a fault of ours"))
            assert [each["log_level"] for each in logs] == ["error"]
            await found.look([database(200)])
            assert found.heard == [(database(200),)]


class TestTheNextLook:
    async def test_is_one_that_began_after_it_was_asked_for(self) -> None:
        async with watched(database(100)) as found:
            waiting = asyncio.create_task(found.watch.next_look())
            await asyncio.sleep(0)
            await found.look([database(200)])  # was under way
            await asyncio.sleep(0)
            assert not waiting.done()
            await found.look(DatabaseUnavailable())
            async with asyncio.timeout(PATIENCE):
                await waiting
            assert not found.watch.has_database
