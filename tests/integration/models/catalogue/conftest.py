"""A catalogue of prices, published by a server that does what a test says."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest

from app.models.catalogue.prices import MOST_BYTES
from app.models.catalogue.pricing import PriceBook
from app.settings import Settings
from tests.support.raw_server import Exchange, RawServer, raw_server


def published(price: float) -> bytes:
    """A catalogue of one model at this price."""
    model = {"name": "Small", "cost": {"input": price, "output": 2 * price}}
    return orjson.dumps({"one": {"models": {"small": model}}})


@cache
def bomb(price: float) -> bytes:
    """A small answer that unpacks to a large one."""
    packed = gzip.compress(published(price) + b" " * (3 * MOST_BYTES), compresslevel=1)
    assert len(packed) < MOST_BYTES / 10
    return packed


class Publisher:
    """Answers with a catalogue, or with what is none."""

    def __init__(self) -> None:
        self.price = 1.0

    async def well(self, exchange: Exchange) -> None:
        await exchange.answer(published(self.price))

    async def packed(self, exchange: Exchange) -> None:
        await exchange.answer(gzip.compress(published(self.price)), "Content-Encoding: gzip")

    async def by_a_detour(self, exchange: Exchange) -> None:
        if exchange.path == "/there":
            await exchange.answer(published(self.price))
        else:
            await exchange.answer(b"", "Location: /there", status="302 Found")

    async def not_at_all(self, exchange: Exchange) -> None:
        """Hang up."""

    async def failing(self, exchange: Exchange) -> None:
        await exchange.answer(published(self.price), status="500 Internal Server Error")

    async def cut(self, exchange: Exchange) -> None:
        whole = published(self.price)
        await exchange.head(len(whole))
        await exchange.send(whole[:-5])

    async def cut_in_a_chunk(self, exchange: Exchange) -> None:
        whole = published(self.price)
        await exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        await exchange.send(b"%x\r\n%b\r\n" % (len(whole), whole))  # and no last chunk

    async def with_a_page(self, exchange: Exchange) -> None:
        await exchange.answer(b"<html>Sign in to the hotel's network</html>")

    async def with_nothing(self, exchange: Exchange) -> None:
        await exchange.answer(b"{}")

    async def without_an_end(self, exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        while True:
            await exchange.send(b" " * 65536)

    async def too_much(self, exchange: Exchange) -> None:
        await exchange.answer(published(self.price) + b" " * MOST_BYTES)

    async def a_bomb(self, exchange: Exchange) -> None:
        await exchange.answer(bomb(self.price), "Content-Encoding: gzip")

    async def packed_otherwise(self, exchange: Exchange) -> None:
        await exchange.answer(published(self.price), "Content-Encoding: zstd")

    async def packed_and_cut(self, exchange: Exchange) -> None:
        await exchange.answer(gzip.compress(published(self.price))[:-8], "Content-Encoding: gzip")

    async def in_circles(self, exchange: Exchange) -> None:
        await exchange.answer(b"", "Location: /", status="302 Found")

    async def elsewhere(self, exchange: Exchange) -> None:
        await exchange.answer(b"", "Location: file:///etc/passwd", status="302 Found")

    async def with_no_http(self, exchange: Exchange) -> None:
        await exchange.send(b"\x00\x01\x02\r\n\r\n")


BAD = (
    "not_at_all",
    "failing",
    "cut",
    "cut_in_a_chunk",
    "with_a_page",
    "with_nothing",
    "without_an_end",
    "too_much",
    "a_bomb",
    "packed_otherwise",
    "packed_and_cut",
    "in_circles",
    "elsewhere",
    "with_no_http",
)


@dataclass
class Shelf:
    """Where price books are kept, and who publishes what is in them."""

    publisher: Publisher
    source: RawServer
    folder: Path

    def settings(self, **others: Any) -> Settings:
        return Settings.model_validate(
            {"catalogue_url": self.source.url, "catalogue_folder": self.folder, **others}
        )

    def book(self, **others: Any) -> PriceBook:
        """A process's."""
        return PriceBook(self.settings(**others))

    def files(self) -> list[Path]:
        return sorted(self.folder.iterdir()) if self.folder.exists() else []


def price_in(book: PriceBook) -> float | None:
    """What the one model costs."""
    found = book.prices.get(("one", "small"))
    return None if found is None else found.input_price


@pytest.fixture
def publisher() -> Publisher:
    return Publisher()


@pytest.fixture
async def shelf(publisher: Publisher, tmp_path: Path) -> AsyncIterator[Shelf]:
    async with raw_server(publisher.well) as source:
        yield Shelf(publisher, source, tmp_path / "catalogue")
