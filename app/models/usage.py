"""Tokens of a call: as Ollama counts them, and as far as it came where it was cut off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from app.models.call import ModelCall


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens read and tokens generated."""

    prompt_tokens: int = 0
    output_tokens: int = 0


NOTHING = Usage()


class TokenCount:
    """Follows an answer, line by line."""

    def __init__(self, call: ModelCall, context: int) -> None:
        self._call = call
        self._context = context
        self._pieces = 0
        self._counted: Usage | None = None

    def line(self, part: dict[str, Any]) -> None:
        """Take note of a line; each but the last is about one token."""
        if part.get("done") is True or self._call.kind == "embedding":
            self._counted = Usage(_count(part, "prompt_eval_count"), _count(part, "eval_count"))
        else:
            self._pieces += 1

    def total(self) -> Usage:
        """What was used so far. Without a word from the server, nothing is known to have been."""
        if self._counted is not None:
            return self._counted
        if not self._pieces:
            return NOTHING
        return Usage(self._call.rough_prompt_tokens(self._context), self._pieces)


def _count(part: dict[str, Any], name: str) -> int:
    """A count; the server leaves out those that are zero."""
    value = part.get(name, 0)
    most = 2**31 - 1
    return min(max(value, 0), most) if isinstance(value, int) else 0
