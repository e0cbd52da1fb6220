"""What clients get about models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, Field

from app.models.catalogue.offered import ModelStatus, PriceSource

if TYPE_CHECKING:
    from app.models.catalogue.offered import OfferedModel, Price


class PriceView(BaseModel):
    """What a million tokens cost. A model without a price is paid in the time of its seats."""

    source: PriceSource = Field(
        description="Who says so: `reported` by its server, or the `catalogue` of prices."
    )
    input_per_million: float | None = None
    output_per_million: float | None = None
    currency: str | None = None


class OfferedModelView(BaseModel):
    """A model that a run may choose. What is null is not known."""

    model: str = Field(description="What `config.configurable.model` of a run names.")
    default: bool = Field(description="Whether it is the one of runs that choose none.")
    status: ModelStatus = Field(
        description="`degraded`: some of its servers do not work. `unknown`: nobody has looked yet."
    )
    context_length: int = Field(description="Tokens of its window, prompt and answer together.")
    max_output: int = Field(description="Most tokens of one answer.")
    model_context_length: int | None = Field(
        description="The longest window that it was made for; the one used here may be shorter."
    )
    capabilities: list[Literal["tools", "vision", "thinking"]]
    digest: str | None = Field(description="Of its weights. Null also where its servers differ.")
    size_bytes: int | None
    price: PriceView
    cost: Literal["tokens", "seat_seconds"] = Field(description="What it is paid in.")
    seat_seconds_per_call: float | None = Field(
        description="How long a call has lately kept its seat, on average over everybody's."
    )


def model_json(model: OfferedModel) -> dict[str, Any]:
    """What is answered of a model."""
    return {
        "model": model.model,
        "default": model.is_default,
        "status": model.status,
        "context_length": model.context_length,
        "max_output": model.max_output,
        "model_context_length": model.model_context_length,
        "capabilities": list(model.capabilities),
        "digest": model.digest,
        "size_bytes": model.size_bytes,
        "price": _price_json(model.price),
        "cost": model.cost,
        "seat_seconds_per_call": model.seat_seconds_per_call,
    }


def _price_json(price: Price) -> dict[str, Any]:
    return {
        "source": price.source,
        "input_per_million": price.input,
        "output_per_million": price.output,
        "currency": price.currency,
    }
