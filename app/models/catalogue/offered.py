"""A model as people choose it: what its pools serve, joined with what is published of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from app.models.catalogue.served import CAPABILITIES, ServedModel

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from app.models.catalogue.prices import Prices, PublishedModel
    from app.models.catalogue.served import Look
    from app.sharing import ChatModel
    from tenancy.scheduler.components import Status

T = TypeVar("T")

ModelStatus = Literal["available", "degraded", "unavailable", "unknown"]
PriceSource = Literal["reported", "catalogue", "unpriced"]
_CATALOGUES_CURRENCY = "USD"
_DEFAULT_TAG = ":latest"


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens cost, and who says so."""

    source: PriceSource
    input: float | None = None
    output: float | None = None
    currency: str | None = None


UNPRICED = Price("unpriced")


@dataclass(frozen=True, slots=True)
class OfferedModel:
    """A model that people may choose. None: not known."""

    model: str
    """By its full name, with the tag: what a run's ``config.configurable.model`` names."""
    is_default: bool
    status: ModelStatus
    context_length: int
    """Tokens of its window, prompt and answer together, as it is used here."""
    max_output: int
    """Most tokens of one answer."""
    model_context_length: int | None
    """The longest window that it was made for."""
    capabilities: tuple[str, ...]
    """Of ``tools``, ``vision``, ``thinking``, in this order."""
    digest: str | None
    size_bytes: int | None
    price: Price
    seat_seconds_per_call: float | None
    """How long one call has kept its seat of late, on average over everybody's."""

    @property
    def cost(self) -> Literal["tokens", "seat_seconds"]:
        """What it is paid in: one without a price is paid in the time of its seats."""
        return "seat_seconds" if self.price.source == "unpriced" else "tokens"


def offered(
    model: ChatModel,
    looks: Mapping[str, Look],
    known: Mapping[str, ServedModel],
    parts: Mapping[str, Status],
    prices: Prices,
    seat_seconds: float | None,
) -> OfferedModel | None:
    """What is known of a model; None: one cannot speak with it.

    ``looks`` are the newest at each pool, and ``known`` what it said when it last did; ``parts``
    how pools stand for those who call them.
    """
    served = [known[pool.pool] for pool in model.pools if pool.pool in known]
    if served and not any(each.answers for each in served):
        return None
    published = _published(model, prices)
    longest = min((each.context for each in served if each.context), default=None)
    if longest is None and published is not None:
        longest = published.context
    return OfferedModel(
        model=model.model,
        is_default=model.is_default,
        status=_status(model, looks, parts),
        context_length=min(model.context, longest or model.context),
        max_output=min(model.output, (published.output if published else None) or model.output),
        model_context_length=longest,
        capabilities=_capabilities(model, served, published),
        digest=_agreed(each.digest for each in served),
        size_bytes=_agreed(each.size_bytes for each in served),
        price=_price(served, published),
        seat_seconds_per_call=None if seat_seconds is None else round(seat_seconds, 1),
    )


def reads_images(model: ChatModel, known: Mapping[str, ServedModel]) -> bool:
    """Whether a model may be shown images: as the settings say, or else every server of its own."""
    if model.images is not None:
        return model.images
    return "vision" in _common([known[p.pool] for p in model.pools if p.pool in known])


def prompt_tokens(model: ChatModel, known: Mapping[str, ServedModel]) -> int:
    """What a model's window leaves for the prompt, whichever of its servers is called.

    A window that is pinned to more than a model was made for is cut by its server, and what does
    not fit is lost without a word.
    """
    made_for = [known[p.pool].context for p in model.pools if p.pool in known]
    window = min((each for each in made_for if each is not None), default=model.context)
    if window >= model.context:
        return model.prompt_tokens
    return max(window - model.output, window // 2)


def _published(model: ChatModel, prices: Prices) -> PublishedModel | None:
    if model.provider is None:
        return None
    names = (model.model, model.model.removesuffix(_DEFAULT_TAG))
    return next((prices[model.provider, n] for n in names if (model.provider, n) in prices), None)


def _status(
    model: ChatModel, looks: Mapping[str, Look], parts: Mapping[str, Status]
) -> ModelStatus:
    """Of all its pools. What those say who call them counts more than a look from here."""
    found = {_pool_status(pool.pool, looks, parts) for pool in model.pools} - {"unknown"}
    if not found:
        return "unknown"
    if found == {"available"}:
        return "available"
    return "unavailable" if found == {"unavailable"} else "degraded"


def _pool_status(pool: str, looks: Mapping[str, Look], parts: Mapping[str, Status]) -> ModelStatus:
    said = parts.get(f"model:{pool}")
    if said is not None:
        return said
    look = looks.get(pool)
    if look is None:
        return "unknown"
    return "available" if isinstance(look, ServedModel) else "unavailable"


def _capabilities(
    model: ChatModel, served: list[ServedModel], published: PublishedModel | None
) -> tuple[str, ...]:
    """What each of its servers says it can, since a call may go to any; else what is published."""
    can = _common(served)
    if published is not None and not any(each.capabilities is not None for each in served):
        can = published.capabilities
    if model.images is not None:
        can = can | {"vision"} if model.images else can - {"vision"}
    return tuple(name for name in CAPABILITIES if name in can)


def _common(served: list[ServedModel]) -> frozenset[str]:
    said = [each.capabilities for each in served if each.capabilities is not None]
    return frozenset.intersection(*said) if said else frozenset()


def _agreed(values: Iterable[T | None]) -> T | None:
    """What all say that say anything; None where they differ."""
    said = {value for value in values if value is not None}
    return said.pop() if len(said) == 1 else None


def _price(served: list[ServedModel], published: PublishedModel | None) -> Price:
    """As the provider reports it; else as it is published."""
    for each in served:
        if (said := each.price) is not None:
            return Price("reported", said.input, said.output, said.currency)
    if published is None or (published.input_price is None and published.output_price is None):
        return UNPRICED
    return Price("catalogue", published.input_price, published.output_price, _CATALOGUES_CURRENCY)
