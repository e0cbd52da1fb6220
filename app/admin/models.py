"""``stoa admin models``: the models that people may choose, as they look from here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.admin.acts import acts
from app.admin.tables import table
from app.models.catalogue.catalogue import ModelCatalogue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.table import Table

    from app.models.catalogue.offered import OfferedModel, Price
    from app.settings import Settings
    from tenancy.acts import Act


async def look_at_models(settings: Settings, act: Act, *, refresh: bool) -> Sequence[OfferedModel]:
    """Look at the model servers, and with ``refresh`` have the catalogue of prices read anew.

    Either is on record.

    Raises:
        CatalogueNotRefreshed: there are no new prices.
        WrongRole: the dispatch role may do more or less than it must.
        DatabaseUnavailable: Postgres cannot be reached.
        SettingsError: the pools contradict each other.
    """
    async with acts(settings) as record:
        await (record.did(act, "models_refreshed") if refresh else record.looked(act))
    catalogue = ModelCatalogue(settings, tuple, _unknown_times)
    try:
        await catalogue.start()
        if refresh:
            await catalogue.refresh()
        await catalogue.first_look()
        return catalogue.models
    finally:
        await catalogue.stop()


def models_table(models: Iterable[OfferedModel]) -> Table:
    """The same for people."""
    return table(
        ("model", "status", "window", "made for", "output", "can", "GB", "price"),
        (
            (
                f"{each.model}{' (default)' if each.is_default else ''}",
                *(each.status, each.context_length, each.model_context_length, each.max_output),
                " ".join(each.capabilities),
                None if each.size_bytes is None else round(each.size_bytes / 1e9, 1),
                _price(each.price),
            )
            for each in models
        ),
    )


async def _unknown_times() -> Mapping[str, float]:
    return {}


def _price(price: Price) -> str:
    if price.source == "unpriced":
        return "time"
    return f"{price.input} / {price.output} {price.currency} ({price.source})"
