"""One look-up for all who want a value, whatever becomes of those who wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from app.models.catalogue.flight import FIRST_PAUSE_SECONDS, Refreshed


class Panic(BaseException):
    """What nobody catches."""


class Source:
    """Something that is looked up, when a test lets it be."""

    def __init__(self) -> None:
        self.begun = 0
        self.time = 0.0
        self.asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.answer: str | BaseException = "new"

    async def load(self) -> str:
        self.begun += 1
        self.asked.set()
        await self.may_answer.wait()
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
async def kept(source: Source) -> AsyncIterator[Refreshed[str]]:
    kept = Refreshed("test", source.load, 60.0, "old", lambda: source.time)
    yield kept
    await kept.aclose()


async def landed(kept: Refreshed[str]) -> None:
    while kept._flight is not None:  # noqa: ASYNC110 - it lands by itself
        await asyncio.sleep(0)


class TestManyWhoWantIt:
    async def test_are_served_by_one_look_up(self, source: Source, kept: Refreshed[str]) -> None:
        waiting = [asyncio.create_task(kept.refresh()) for _ in range(6)]
        read = [kept.read() for _ in range(6)]
        await source.asked.wait()
        read += [kept.read() for _ in range(6)]
        waiting += [asyncio.create_task(kept.refresh()) for _ in range(6)]
        assert read == ["old"] * 12
        source.may_answer.set()
        assert await asyncio.gather(*waiting) == ["new"] * 12
        assert kept.read() == "new"
        assert source.begun == 1

    async def test_do_without_whoever_gives_up(self, source: Source, kept: Refreshed[str]) -> None:
        first, second = (asyncio.create_task(kept.refresh()) for _ in range(2))
        await source.asked.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        source.may_answer.set()
        assert await second == "new"
        assert source.begun == 1

    async def test_are_all_told_of_a_failure_and_keep_what_was_there(
        self, source: Source, kept: Refreshed[str]
    ) -> None:
        source.answer = OSError()
        waiting = [asyncio.create_task(kept.refresh()) for _ in range(3)]
        source.may_answer.set()
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(each) for each in found] == [OSError] * 3
        assert kept.read() == "old"


class TestReading:
    async def test_waits_for_nothing_and_sees_to_what_is_old(
        self, source: Source, kept: Refreshed[str]
    ) -> None:
        source.may_answer.set()
        assert kept.read() == "old"
        await landed(kept)
        assert kept.read() == "new"
        assert source.begun == 1
        source.time += 59
        kept.read()
        assert source.begun == 1
        source.time += 1
        source.asked.clear()
        kept.read()
        await source.asked.wait()
        assert source.begun == 2

    async def test_tries_later_and_later_after_failures(
        self, source: Source, kept: Refreshed[str]
    ) -> None:
        source.answer = OSError()
        source.may_answer.set()
        for pause in (FIRST_PAUSE_SECONDS, 2 * FIRST_PAUSE_SECONDS, 4 * FIRST_PAUSE_SECONDS):
            before = source.begun
            kept.read()
            await landed(kept)
            assert source.begun == before + 1
            source.time += pause - 0.1
            kept.read()
            await landed(kept)
            assert source.begun == before + 1
            source.time += 0.1
        source.answer = "new"
        kept.read()
        await landed(kept)
        assert kept.read() == "new"


class TestALookUp:
    @pytest.mark.parametrize(
        "failure",
        [OSError(), asyncio.CancelledError(), Panic()],
        ids=["failed", "cancelled", "panicked"],
    )
    async def test_that_comes_to_nothing_lets_the_next_begin(
        self, source: Source, kept: Refreshed[str], failure: BaseException
    ) -> None:
        source.answer = failure
        source.may_answer.set()
        with pytest.raises(type(failure)):
            await kept.refresh()
        source.answer = "new"
        assert await kept.refresh() == "new"

    async def test_is_ended_with_the_process(self, source: Source, kept: Refreshed[str]) -> None:
        waiting = asyncio.create_task(kept.refresh())
        await source.asked.wait()
        await kept.aclose()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert kept.read() == "old"
        with pytest.raises(asyncio.CancelledError):
            await kept.refresh()
        source.time += 3600
        assert kept.read() == "old"
        assert source.begun == 1
