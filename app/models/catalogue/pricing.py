"""What models cost, as it was published last: looked up for all, and kept in a file."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING

from app.models.catalogue.flight import Refreshed
from app.models.catalogue.prices import MOST_BYTES, parse_prices
from app.models.catalogue.source import fetch_catalogue
from app.models.catalogue.stored import CatalogueFile, Stored

if TYPE_CHECKING:
    from app.models.catalogue.prices import Prices
    from app.settings import Settings

NOTICE_SECONDS = 30.0
"""How long it takes at the longest to notice what another process has put into the folder."""


class PriceBook:
    """The newest prices that could be had: another process may have been the one that could."""

    def __init__(self, settings: Settings) -> None:
        self._source = settings.catalogue_url
        # One of another source is not this one's, however new it is.
        name = hashlib.sha256((self._source or "").encode()).hexdigest()[:12]
        self._file = CatalogueFile(settings.catalogue_folder / f"models-{name}.json", MOST_BYTES)
        self._fresh_seconds = settings.catalogue_seconds
        self._newest: Stored[Prices] = Stored({}, 0)
        self._published = Refreshed("published prices", self._fetch, self._fresh_seconds)
        self._stored = Refreshed("stored prices", self._notice, NOTICE_SECONDS)

    async def start(self) -> None:
        """Begin with what is in the folder. A folder that cannot be read is none."""
        if self._source is None:
            return
        with suppress(OSError):  # it is logged, and tried again
            await self._stored.refresh()

    async def stop(self) -> None:
        """End what is under way."""
        await self._stored.aclose()
        await self._published.aclose()

    @property
    def prices(self) -> Prices:
        """What is known, at once. What is too old is looked up meanwhile."""
        if self._source is not None:
            self._stored.read()
            if self._newest.age_seconds >= self._fresh_seconds:
                self._published.read()
        return self._newest.value

    async def refresh(self) -> None:
        """Look it up now, if there is anywhere to.

        Raises:
            CatalogueUnavailable, CatalogueInvalid: there is none to be had; what was known stays.
            OSError: the folder cannot be written.
        """
        if self._source is not None:
            await self._published.refresh()

    async def _fetch(self) -> None:
        assert self._source is not None  # noqa: S101 - nobody looks where there is nothing
        raw = await fetch_catalogue(self._source)
        self._newest = await asyncio.to_thread(self._file.replace, raw, parse_prices)

    async def _notice(self) -> None:
        known = self._newest.written_at
        found = await asyncio.to_thread(self._file.read, parse_prices, known)
        if found is not None:
            self._newest = found
