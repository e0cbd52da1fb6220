"""Makes a conversation fit, as Ollama does: the oldest turns go, the system's words stay."""

from __future__ import annotations

from app.dev.model.requests import Message

ROOM_FOR_THE_ANSWER = 0.25


class TooLong(Exception):
    """Not even the last message fits, or the request is wrong in another way."""


def shorten(messages: list[Message], error: dict[str, object]) -> list[Message]:
    """Return the messages without the oldest turns that are too many.

    ``error`` is llama.cpp's: it says how many tokens there are, and how many there may be.

    Raises:
        TooLong: nothing more can be left out.
    """
    tokens, context = error.get("n_prompt_tokens"), error.get("n_ctx")
    if not isinstance(tokens, int) or not isinstance(context, int):
        raise TooLong(str(error.get("message", "invalid request")))
    allowed = _size(messages) * context * (1 - ROOM_FOR_THE_ANSWER) / tokens
    shorter = list(messages)
    while _size(shorter) > allowed or len(shorter) == len(messages):
        oldest = next((i for i, each in enumerate(shorter[:-1]) if each.role != "system"), None)
        if oldest is None:
            break
        del shorter[oldest]
    if len(shorter) == len(messages):
        raise TooLong("the input length exceeds the context length")
    return shorter


def _size(messages: list[Message]) -> int:
    return sum(len(message.content) for message in messages)
