"""From llama.cpp's parts to the lines of Ollama's wire."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from app.dev.model.requests import ChatRequest, Part
from app.dev.model.truncation import TooLong, shorten

if TYPE_CHECKING:
    from app.dev.model.engine import Engine

Line = dict[str, object]

_NANOSECONDS = 1_000_000_000
_PER_MILLISECOND = 1_000_000


class Refused(Exception):
    """The request cannot be answered; the message goes to the client."""


async def answer_lines(engine: Engine, request: ChatRequest) -> AsyncGenerator[Line]:
    """Yield the lines of an answer.

    Raises:
        Refused: before the first line.
    """
    started = time.monotonic()
    if not request.messages:
        yield _done(request.model, "load", {})
        return
    messages = request.messages
    while True:
        async with aclosing(engine.generate(request.for_llama(messages))) as parts:
            first = await anext(parts, None)
            error = first.get("error") if first else None
            if not isinstance(error, dict):
                async with aclosing(_lines(request.model, started, first, parts)) as lines:
                    async for line in lines:
                        yield line
                return
        try:
            messages = shorten(messages, error)
        except TooLong as why:
            raise Refused(str(why)) from None


async def _lines(
    model: str, started: float, first: Part | None, rest: AsyncGenerator[Part]
) -> AsyncGenerator[Line]:
    part = first
    while part is not None and "error" not in part:
        text, reason = _text_and_reason(part)
        if text:
            yield _line(model, text)
        if reason:
            yield _done(model, reason, _metrics(part, started))
            return
        part = await anext(rest, None)
    yield {"error": "model runner has unexpectedly stopped"}


def joined(lines: list[Line]) -> Line:
    """Return the one object that ``stream: false`` answers with."""
    last = dict(lines[-1])
    messages = [line["message"] for line in lines]
    text = "".join(str(message["content"]) for message in messages if isinstance(message, dict))
    return {**last, "message": {"role": "assistant", "content": text}}


def encode(line: Line) -> bytes:
    """Return a line as it stands in the stream."""
    return json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def _line(model: str, text: str) -> Line:
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    message = {"role": "assistant", "content": text}
    return {"model": model, "created_at": stamp, "message": message, "done": False}


def _done(model: str, reason: str, metrics: dict[str, int]) -> Line:
    counted = {name: value for name, value in metrics.items() if value}
    return {**_line(model, ""), "done": True, "done_reason": reason, **counted}


def _text_and_reason(part: Part) -> tuple[str, str | None]:
    choices = part.get("choices")
    if not isinstance(choices, list) or not choices:
        return "", None
    choice = choices[0]
    return choice["delta"].get("content") or "", choice.get("finish_reason")


def _metrics(part: Part, started: float) -> dict[str, int]:
    timings = part.get("timings")
    timings = timings if isinstance(timings, dict) else {}
    return {
        "total_duration": int((time.monotonic() - started) * _NANOSECONDS),
        # Like Ollama, tokens that the cache spared are counted too.
        "prompt_eval_count": timings.get("prompt_n", 0) + timings.get("cache_n", 0),
        "prompt_eval_duration": int(timings.get("prompt_ms", 0) * _PER_MILLISECOND),
        "eval_count": timings.get("predicted_n", 0),
        "eval_duration": int(timings.get("predicted_ms", 0) * _PER_MILLISECOND),
    }
