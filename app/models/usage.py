"""Tokens of a call: as Ollama counts them, and as far as it came where it was cut off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from app.models.call import ModelCall

_MOST = 2**31 - 1
_CHARACTERS_PER_TOKEN = 4


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
        self._was_cut_off = False

    def line(self, part: dict[str, Any]) -> None:
        """Take note of a line; each but the last is about one token."""
        if self._call.kind == "embedding":
            rough = self._call.rough_prompt_tokens(_MOST)
            self._counted = Usage(_count(part, "prompt_eval_count", rough))
        elif part.get("done") is True:
            self._counted = Usage(_count(part, "prompt_eval_count"), _count(part, "eval_count"))
        else:
            self._pieces += max(1, _characters(part) // _CHARACTERS_PER_TOKEN)

    def cut_off(self) -> None:
        """The call is ended by whoever made it: the server was reading its prompt at least."""
        self._was_cut_off = True

    def total(self) -> Usage:
        """What was used so far. Of a server that said nothing, nothing is known."""
        if self._counted is not None:
            return self._counted
        if not self._pieces and not self._was_cut_off:
            return NOTHING
        return Usage(self._call.rough_prompt_tokens(self._context), self._pieces)


def _count(part: dict[str, Any], name: str, absent: int = 0) -> int:
    """A count; the server leaves out those that are zero, and an old route all of them."""
    value = part.get(name, absent)
    return min(max(value, 0), _MOST) if isinstance(value, int) else absent


def _characters(part: dict[str, Any]) -> int:
    said = part.get("message") or part
    return len(said.get("content") or said.get("response") or said.get("thinking") or "")
