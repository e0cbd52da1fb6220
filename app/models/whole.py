"""One object out of an answer's parts, for whoever asked for no stream. Pure.

The server is always asked for a stream: so an answer that is cut off is known as far as it came,
and silence is noticed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from app.models.call import ModelCall

_TEXTS = ("content", "thinking")
_SUMS = ("total_duration", "load_duration", "prompt_eval_count")


def joined(call: ModelCall, parts: list[dict[str, Any]]) -> bytes:
    """The answer that ``stream: false`` has."""
    whole = _answer(parts) if call.kind == "answer" else _embeddings(parts)
    return json.dumps(whole).encode()


def _answer(parts: list[dict[str, Any]]) -> dict[str, Any]:
    whole = dict(parts[-1])
    _join(whole, parts, ("response", "thinking"), "logprobs")
    if any("message" in part for part in parts):
        messages = [part.get("message") or {} for part in parts]
        whole["message"] = {"role": "assistant", "content": "", **messages[-1]}
        _join(whole["message"], messages, _TEXTS, "tool_calls")
    return whole


def _join(
    whole: dict[str, Any], parts: list[dict[str, Any]], texts: tuple[str, ...], items: str
) -> None:
    for name in texts:
        if any(part.get(name) for part in parts):
            whole[name] = "".join(part.get(name) or "" for part in parts)
    if found := [each for part in parts for each in part.get(items) or ()]:
        whole[items] = found


def _embeddings(parts: list[dict[str, Any]]) -> dict[str, Any]:
    whole = dict(parts[-1])
    if "embeddings" in whole:
        whole["embeddings"] = [vector for part in parts for vector in part["embeddings"]]
        whole |= {name: sum(part.get(name, 0) for part in parts) for name in _SUMS}
    return whole
