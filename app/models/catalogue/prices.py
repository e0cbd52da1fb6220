"""Limits and prices of models, in the form in which models.dev publishes them. Pure.

https://models.dev/api.json: providers by id, each with its models by id; prices in US dollars for
a million tokens, limits in tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

MOST_BYTES = 8_000_000
"""Of what is read: what is published has a few megabytes."""
MOST_MODELS = 50_000
"""And providers together: each takes many times what it has on the wire."""


class CatalogueInvalid(ValueError):
    """It is no catalogue of models."""


class _Published(BaseModel):
    """What is taken of an object; the rest of it is let be."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class _Cost(_Published):
    input: float | None = Field(None, ge=0, allow_inf_nan=False)
    output: float | None = Field(None, ge=0, allow_inf_nan=False)


class _Limit(_Published):
    context: int | None = Field(None, ge=0)
    output: int | None = Field(None, ge=0)


class _Modalities(_Published):
    input: tuple[str, ...] = ()


class _Model(_Published):
    name: str = ""
    cost: _Cost = Field(default_factory=lambda: _Cost(input=None, output=None))
    limit: _Limit = Field(default_factory=lambda: _Limit(context=None, output=None))
    modalities: _Modalities = Field(default_factory=_Modalities)
    tool_call: bool = False
    reasoning: bool = False


class _Provider(_Published):
    models: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """What is published of a model."""

    name: str
    input_price: float | None
    """US dollars for a million tokens; None: not said."""
    output_price: float | None
    context: int | None
    output: int | None
    capabilities: frozenset[str]
    """Of ``tools``, ``vision``, ``thinking``."""


Prices = Mapping[tuple[str, str], PublishedModel]
"""By provider and model."""

_PROVIDERS: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])


def parse_prices(raw: bytes) -> Prices:
    """Read a catalogue. A model, or a provider, that makes no sense is left out.

    Raises:
        CatalogueInvalid: it is too large, is not JSON, or names no model.
    """
    if len(raw) > MOST_BYTES:
        raise CatalogueInvalid
    try:
        providers = _PROVIDERS.validate_python(orjson.loads(raw))
    except (orjson.JSONDecodeError, ValidationError):
        raise CatalogueInvalid from None
    if _count(providers) > MOST_MODELS:
        raise CatalogueInvalid
    found: dict[tuple[str, str], PublishedModel] = {}
    for provider, described in providers.items():
        for model, published in _models_of(described):
            found[provider, model] = published
    if not found:
        raise CatalogueInvalid
    return found


def _count(providers: Mapping[str, Any]) -> int:
    described = (each.get("models") for each in providers.values() if isinstance(each, dict))
    return len(providers) + sum(len(models) for models in described if isinstance(models, dict))


def _models_of(described: object) -> list[tuple[str, PublishedModel]]:
    try:
        models = _Provider.model_validate(described).models
    except ValidationError:
        return []
    found: list[tuple[str, PublishedModel]] = []
    for model, facts in models.items():
        try:
            found.append((model, _published(_Model.model_validate(facts))))
        except ValidationError:
            continue
    return found


def _published(model: _Model) -> PublishedModel:
    can = {
        "tools": model.tool_call,
        "thinking": model.reasoning,
        "vision": "image" in model.modalities.input,
    }
    return PublishedModel(
        model.name,
        model.cost.input,
        model.cost.output,
        model.limit.context or None,
        model.limit.output or None,
        frozenset(name for name, is_so in can.items() if is_so),
    )
