"""The models that people may choose: what is known of them, at once, and looked up for all."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from app.models.catalogue.flight import Refreshed
from app.models.catalogue.looking import ServedModels
from app.models.catalogue.offered import offered
from app.models.catalogue.prices import CatalogueInvalid
from app.models.catalogue.pricing import PriceBook
from app.models.catalogue.source import CatalogueUnavailable
from app.sharing import chat_models
from tenancy.errors import UpstreamFailed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from app.models.catalogue.offered import OfferedModel
    from app.settings import Settings
    from tenancy.scheduler.components import Component

TIMES_SECONDS = 30.0
"""How old what calls have lately taken may be."""


class CatalogueNotRefreshed(UpstreamFailed):
    """The catalogue of prices could not be read, or not be kept. The log says how it failed."""

    code = "catalogue_unavailable"
    message = "The catalogue of models could not be refreshed. What was known of it stays."


class ModelCatalogue:
    """What ``/models`` answers. Started and stopped with its process.

    Args:
        settings: which pools there are, and where prices come from.
        parts: how the parts of the service stand now, pools among them.
        call_seconds: how long calls of each model have lately kept their seat.

    Raises:
        SettingsError: the pools contradict each other.
    """

    def __init__(
        self,
        settings: Settings,
        parts: Callable[[], Iterable[Component]],
        call_seconds: Callable[[], Awaitable[Mapping[str, float]]],
    ) -> None:
        self._models = chat_models(settings)
        self._parts = parts
        self._served = ServedModels(self._models)
        self._prices = PriceBook(settings)
        self._times = Refreshed("times of calls", call_seconds, TIMES_SECONDS)

    async def start(self) -> None:
        """Begin to look; nobody waits for a model server."""
        await self._prices.start()
        _ = self.models

    async def stop(self) -> None:
        """End what is under way."""
        await self._served.aclose()
        await self._times.aclose()
        await self._prices.stop()

    @property
    def models(self) -> tuple[OfferedModel, ...]:
        """What is known now, the default model first; it never waits."""
        looks, prices, times = self._served.looks, self._prices.prices, self._times.read() or {}
        parts = {part.component: part.status for part in self._parts()}
        found = (
            offered(each, looks, self._served.known, parts, prices, times.get(each.model))
            for each in self._models
        )
        return tuple(each for each in found if each is not None)

    async def first_look(self) -> None:
        """Return once the model servers were looked at, if they were not before."""
        await self._served.first_look()

    async def refresh(self) -> None:
        """Look everything up now, together with whoever does already.

        Raises:
            CatalogueNotRefreshed: there are no new prices; what was known stays.
        """
        _, error = await asyncio.gather(
            self._served.refresh(), self._prices.refresh(), return_exceptions=True
        )
        if isinstance(error, CatalogueUnavailable | CatalogueInvalid | OSError):
            raise CatalogueNotRefreshed from error
        if error is not None:
            raise error
