"""Prices of models, of a source that does what it likes: what is good stays, and nobody waits."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from app.models.catalogue.prices import CatalogueInvalid
from app.models.catalogue.pricing import PriceBook
from app.models.catalogue.source import CatalogueUnavailable, fetch_catalogue
from tests.integration.models.catalogue.conftest import BAD, Shelf, price_in
from tests.support.held_ports import held_port
from tests.support.raw_server import Exchange

PATIENCE = 60.0
DAY = 24 * 3600
TIMES = 8


@pytest.fixture
async def book(shelf: Shelf) -> AsyncIterator[PriceBook]:
    """One that has been read once."""
    book = shelf.book()
    await book.start()
    await book.refresh()
    yield book
    await book.stop()


def age(shelf: Shelf, seconds: float) -> None:
    """Let what is in the folder be so old."""
    (file,) = shelf.files()
    then = time.time() - seconds
    os.utime(file, (then, then))


async def until_it_costs(book: PriceBook, price: float) -> None:
    async with asyncio.timeout(PATIENCE):
        while price_in(book) != price:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


class TestASource:
    @pytest.mark.parametrize("how", ["well", "packed", "by_a_detour"])
    async def test_is_read(self, shelf: Shelf, book: PriceBook, how: str) -> None:
        shelf.source.answerer = getattr(shelf.publisher, how)
        shelf.publisher.price = 7.0
        await book.refresh()
        assert price_in(book) == 7.0
        assert len(shelf.files()) == 1

    @pytest.mark.parametrize("how", BAD)
    async def test_that_is_bad_takes_nothing_away(
        self, shelf: Shelf, book: PriceBook, how: str
    ) -> None:
        (file,) = shelf.files()
        good = file.read_bytes()
        shelf.source.answerer = getattr(shelf.publisher, how)
        shelf.publisher.price = 7.0
        for _ in range(2):  # the guard is released
            with pytest.raises((CatalogueUnavailable, CatalogueInvalid)):
                await book.refresh()
        assert price_in(book) == 1.0
        assert shelf.files() == [file]
        assert file.read_bytes() == good
        shelf.source.answerer = shelf.publisher.well
        await book.refresh()
        assert price_in(book) == 7.0

    async def test_that_is_dead_takes_nothing_away(self, shelf: Shelf, book: PriceBook) -> None:
        with held_port() as port:
            later = shelf.book(catalogue_url=f"http://127.0.0.1:{port}")
            await later.start()
            with pytest.raises(CatalogueUnavailable):
                await later.refresh()
            assert price_in(later) is None
            await later.stop()
        assert price_in(book) == 1.0

    async def test_that_says_nothing_is_not_waited_for(self, shelf: Shelf) -> None:
        async def silent(_exchange: Exchange) -> None:
            await asyncio.Event().wait()

        shelf.source.answerer = silent
        with pytest.raises(CatalogueUnavailable):
            await fetch_catalogue(shelf.source.url, seconds=0.05)

    async def test_that_says_it_a_letter_at_a_time_is_not_waited_for(self, shelf: Shelf) -> None:
        async def dripping(exchange: Exchange) -> None:
            await exchange.head(1_000_000)
            while True:
                await exchange.send(b" ")
                await asyncio.sleep(0.01)

        shelf.source.answerer = dripping
        with pytest.raises(CatalogueUnavailable):
            await fetch_catalogue(shelf.source.url, seconds=0.2)

    async def test_may_be_a_file(self, shelf: Shelf, tmp_path: Path) -> None:
        path = tmp_path / "api.json"
        path.write_bytes(b'{"one": {"models": {"small": {"cost": {"input": 3}}}}}')
        for source in (str(path), path.as_uri()):
            book = shelf.book(catalogue_url=source)
            await book.refresh()
            assert price_in(book) == 3.0
            await book.stop()
        path.unlink()
        with pytest.raises(CatalogueUnavailable):
            await fetch_catalogue(str(path))

    async def test_need_not_be(self, shelf: Shelf) -> None:
        book = shelf.book(catalogue_url=None)
        await book.start()
        await book.refresh()
        assert book.prices == {}
        assert shelf.files() == []
        await book.stop()


class TestManyWhoAsk:
    async def test_are_served_by_one_request_whoever_of_them_gives_up(
        self, shelf: Shelf, book: PriceBook
    ) -> None:
        may_answer = asyncio.Event()

        async def slow(exchange: Exchange) -> None:
            await may_answer.wait()
            await shelf.publisher.well(exchange)

        shelf.source.answerer, shelf.publisher.price = slow, 7.0
        shelf.source.asked.clear()
        shelf.source.arrived.clear()
        later = shelf.book(catalogue_seconds=60)
        age(shelf, DAY)
        await later.start()
        explicit = [asyncio.create_task(later.refresh()) for _ in range(4)]
        assert [price_in(later) for _ in range(4)] == [1.0] * 4  # old, and not waited for
        await shelf.source.arrived.wait()
        explicit += [asyncio.create_task(later.refresh()) for _ in range(2)]
        assert [price_in(later) for _ in range(2)] == [1.0] * 2
        explicit[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await explicit[0]
        may_answer.set()
        await asyncio.gather(*explicit[1:])
        assert price_in(later) == 7.0
        assert shelf.source.asked.total() == 1
        assert len(shelf.files()) == 1
        await later.stop()


class TestProcessesThatShareAFolder:
    async def test_begin_with_what_is_there(self, shelf: Shelf, book: PriceBook) -> None:
        shelf.source.asked.clear()
        later = shelf.book()
        await later.start()
        assert price_in(later) == price_in(book) == 1.0
        await later.stop()
        assert shelf.source.asked.total() == 0

    async def test_look_up_what_is_too_old(self, shelf: Shelf, book: PriceBook) -> None:
        age(shelf, 2 * DAY)
        shelf.publisher.price = 7.0
        later = shelf.book()
        await later.start()
        assert price_in(later) == 1.0
        await until_it_costs(later, 7.0)
        await later.stop()
        assert price_in(book) == 1.0  # until it looks into the folder

    async def test_do_without_a_file_that_is_none(self, shelf: Shelf, book: PriceBook) -> None:
        (file,) = shelf.files()
        file.write_bytes(b"half a cata")
        shelf.publisher.price = 7.0
        later = shelf.book()
        await later.start()
        await until_it_costs(later, 7.0)
        await later.stop()
        assert price_in(book) == 1.0

    async def test_notice_what_another_has_found(
        self, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("app.models.catalogue.pricing.NOTICE_SECONDS", 0.0)
        one, other = shelf.book(), shelf.book()
        async with AsyncExitStack() as stack:
            for each in (one, other):
                stack.push_async_callback(each.stop)
                await each.start()
            await one.refresh()
            shelf.publisher.price = 7.0
            await other.refresh()
            asked = shelf.source.asked.total()
            await until_it_costs(one, 7.0)
            assert shelf.source.asked.total() == asked

    async def test_take_none_of_another_source(self, shelf: Shelf, book: PriceBook) -> None:
        later = shelf.book(catalogue_url=f"{shelf.source.url}/another")
        await later.start()
        assert later._newest.value == {}
        await later.stop()
        assert price_in(book) == 1.0

    async def test_replace_it_at_the_same_time_and_never_read_half_of_it(
        self, shelf: Shelf
    ) -> None:
        settings = [shelf.source.url, str(shelf.folder), str(TIMES)]
        processes = [
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", READS_AND_REFRESHES, *settings),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            for _ in range(2)
        ]
        for process in processes:
            assert process.stdout is not None
            assert await process.stdout.readline() == b"ready\n"
        said = [await process.communicate() for process in processes]
        assert [process.returncode for process in processes] == [0, 0], said
        assert shelf.source.asked.total() == 2 * TIMES
        (file,) = shelf.files()
        later = shelf.book()
        await later.start()
        assert price_in(later) == 1.0
        await later.stop()
        assert not file.name.startswith(".")


READS_AND_REFRESHES = """
import asyncio, sys
from app.models.catalogue.prices import parse_prices
from app.models.catalogue.pricing import PriceBook
from app.settings import Settings

async def main(url, folder, _):
    settings = Settings(catalogue_url=url, catalogue_folder=folder)
    book = PriceBook(settings)
    print("ready", flush=True)
    for _ in range(int(sys.argv[3])):
        await book.refresh()
        stored = book._file.read(parse_prices)
        assert stored is not None and ("one", "small") in stored.value
    await book.stop()

asyncio.run(main(*sys.argv[1:]))
"""
"""A process that has the catalogue refreshed again and again; one of several."""
