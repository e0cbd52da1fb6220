"""What a model server says of its models. What makes no sense is not believed.

Ollama's ``/api/tags`` and ``/api/show``. Whoever stands before one may report what a model costs,
as ``pricing`` beside the rest: ``{input_per_million, output_per_million, currency}``.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import httpx
import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.models.catalogue.bounded import TooMuch, read_raw
from app.models.connection import build_transport

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tenancy.scheduler.components import PoolFailure

LOOK_SECONDS = 5.0
"""How long a server has for each of its answers."""
MOST_BYTES = 2_000_000
"""Of one answer: a model's licence and template are in it."""
MOST_MODELS = 10_000
CAPABILITIES = ("tools", "vision", "thinking")
_MOST_TOKENS = 1_000_000_000
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity"}


@dataclass(frozen=True, slots=True)
class ReportedPrice:
    """What a server says that its model costs, for a million tokens."""

    input: float | None
    output: float | None
    currency: str


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model as its server has it. None: it does not say."""

    digest: str | None = None
    size_bytes: int | None = None
    context: int | None = None
    """The longest window that it was made for, in tokens."""
    capabilities: frozenset[str] | None = None
    """Of ``CAPABILITIES``."""
    answers: bool = True
    """Whether one can speak with it: an embedding model only measures texts."""
    price: ReportedPrice | None = None


Look = ServedModel | Literal["unreachable", "model_missing"]
"""What a look at a model on a server has found."""


class _Said(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Tag(_Said):
    name: Annotated[str, Field(max_length=500)]
    digest: Annotated[str, Field(pattern=r"^(sha256:)?[0-9a-f]{12,64}$")] | None = None
    size: Annotated[int, Field(gt=0, lt=2**60, strict=True)] | None = None


class _Pricing(_Said):
    input_per_million: float | None = Field(None, ge=0, allow_inf_nan=False)
    output_per_million: float | None = Field(None, ge=0, allow_inf_nan=False)
    currency: str = Field("USD", pattern=r"^[A-Z]{3}$")


_Words = Annotated[tuple[Annotated[str, Field(max_length=50)], ...], Field(max_length=50)]


class _Abilities(_Said):
    capabilities: _Words


async def look_at_server(
    url: str, models: Iterable[str], *, seconds: float = LOOK_SECONDS
) -> Mapping[str, Look]:
    """Ask a server what it has, and about each of these models. Never raises."""
    wanted = tuple(models)
    async with httpx.AsyncClient(
        transport=build_transport(url), trust_env=False, timeout=seconds, headers=_HEADERS
    ) as client:
        tags = await _asked(client, "GET", f"{url}/api/tags", None, seconds)
        listed = None if tags is None else _listed(tags)
        if listed is None:
            return dict.fromkeys(wanted, "unreachable")
        shown = await asyncio.gather(
            *(
                _asked(client, "POST", f"{url}/api/show", {"model": model}, seconds)
                for model in wanted
                if model in listed
            )
        )
    answers = iter(shown)
    return {
        model: _served(listed[model], next(answers)) if model in listed else "model_missing"
        for model in wanted
    }


async def _asked(
    client: httpx.AsyncClient, method: str, url: str, body: object, seconds: float
) -> dict[str, Any] | None:
    """An object that was answered in time, and in bounds; else None."""
    try:
        async with asyncio.timeout(seconds), client.stream(method, url, json=body) as response:
            response.raise_for_status()
            answer = orjson.loads(await read_raw(response, MOST_BYTES))
    except (httpx.HTTPError, httpx.InvalidURL, OSError, TooMuch, orjson.JSONDecodeError):
        return None
    return answer if isinstance(answer, dict) else None


def _listed(tags: Mapping[str, Any]) -> dict[str, _Tag] | None:
    """The models of a list, by name, without what makes no sense; None: it is no list."""
    models = tags.get("models")
    if not isinstance(models, list):
        return None
    found: dict[str, _Tag] = {}
    for each in models[:MOST_MODELS]:
        name = each.get("name") if isinstance(each, dict) else None
        if not isinstance(name, str):
            continue
        try:
            found[name] = _Tag.model_validate(each)
        except ValidationError:
            found[name] = _Tag(name=name[:500])
    return found


def _served(tag: _Tag, shown: Mapping[str, Any] | None) -> ServedModel:
    if shown is None:
        return ServedModel(tag.digest, tag.size)
    said = _capabilities(shown)
    return ServedModel(
        digest=tag.digest,
        size_bytes=tag.size,
        context=_context(shown.get("model_info")),
        capabilities=None if said is None else said & frozenset(CAPABILITIES),
        answers=said is None or not said or "completion" in said,
        price=_price(shown.get("pricing")),
    )


def _capabilities(shown: Mapping[str, Any]) -> frozenset[str] | None:
    try:
        return frozenset(_Abilities.model_validate(shown).capabilities)
    except ValidationError:
        return None


def _context(model_info: object) -> int | None:
    """``<architecture>.context_length``."""
    if not isinstance(model_info, dict):
        return None
    length = model_info.get(f"{model_info.get('general.architecture')}.context_length")
    if not isinstance(length, int) or isinstance(length, bool):
        return None
    return length if 0 < length <= _MOST_TOKENS else None


def _price(pricing: object) -> ReportedPrice | None:
    try:
        price = _Pricing.model_validate(pricing)
    except ValidationError:
        return None
    if price.input_per_million is None and price.output_per_million is None:
        return None
    return ReportedPrice(price.input_per_million, price.output_per_million, price.currency)


def failure_of(look: Look | None) -> PoolFailure | None:
    """What a look speaks against, as a code; None also where there was none."""
    return None if look is None or isinstance(look, ServedModel) else look
