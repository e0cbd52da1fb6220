"""The lines of Ollama's wire: one JSON object each."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Literal
from uuid import uuid4

from tests.support.model_server.script import ToolCall

Line = dict[str, object]
Kind = Literal["chat", "generate"]

MALFORMED = b'{"model":"m","created_at":"\n'


def encode(line: Line) -> bytes:
    """Return the line as it stands in a stream."""
    return json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def head(model: str) -> Line:
    """Return what every line begins with."""
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {"model": model, "created_at": stamp}


def chunk(
    kind: Kind,
    model: str,
    *,
    content: str = "",
    thinking: str = "",
    tool_calls: tuple[ToolCall, ...] = (),
) -> Line:
    """Return a line that carries a piece of the answer."""
    if kind == "generate":
        thought: Line = {"thinking": thinking} if thinking else {}
        return {**head(model), "response": content, **thought, "done": False}
    message: Line = {"role": "assistant", "content": content}
    if thinking:
        message["thinking"] = thinking
    if tool_calls:
        message["tool_calls"] = [_call(index, call) for index, call in enumerate(tool_calls)]
    return {**head(model), "message": message, "done": False}


def done(
    kind: Kind,
    model: str,
    *,
    reason: str | None,
    metrics: dict[str, int],
    tool_calls: tuple[ToolCall, ...] = (),
) -> Line:
    """Return the last line. Like Ollama, it leaves out what is zero."""
    line = chunk(kind, model, tool_calls=tool_calls)
    line["done"] = True
    if reason is not None:
        line["done_reason"] = reason
    return {**line, **{name: value for name, value in metrics.items() if value}}


def joined(kind: Kind, lines: list[Line]) -> Line:
    """Return the one object that ``stream: false`` answers with."""
    last = dict(lines[-1])
    if kind == "generate":
        return {**last, "response": "".join(str(line.get("response", "")) for line in lines)}
    messages = [line["message"] for line in lines if isinstance(line.get("message"), dict)]
    message: Line = {"role": "assistant", "content": _text(messages, "content")}
    if thinking := _text(messages, "thinking"):
        message["thinking"] = thinking
    if calls := [call for each in messages for call in each.get("tool_calls", ())]:  # type: ignore[attr-defined]
        message["tool_calls"] = calls
    return {**last, "message": message}


def _text(messages: list[object], key: str) -> str:
    return "".join(str(each.get(key, "")) for each in messages if isinstance(each, dict))


def _call(index: int, call: ToolCall) -> Line:
    return {
        "id": call.id or f"call_{uuid4().hex[:8]}",
        "function": {"index": index, "name": call.name, "arguments": call.arguments},
    }
