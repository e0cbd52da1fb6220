"""What a model call needs to know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from app.settings import Settings


@dataclass(frozen=True)
class ModelSettings:
    """One model on one server, and how long to wait for it."""

    url: str
    model: str
    context: int
    """Tokens of context, pinned: a request with another number makes the server load again."""
    output: int
    """Most tokens of an answer, always sent: without it an answer has no end of its own."""

    connect_seconds: float = 5.0
    first_byte_seconds: float = 600.0
    """Covers the wait for a slot, a load of minutes, and the reading of a long prompt."""
    stall_seconds: float = 60.0
    """The longest silence in the middle of an answer."""
    retry_seconds: float = 0.25
    """About how long to wait before a failed call is made again for the first time."""

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Return the default model of the service's settings."""
        return cls(
            url=str(settings.ollama_url).rstrip("/"),
            model=settings.model,
            context=settings.model_context,
            output=settings.model_output,
        )
