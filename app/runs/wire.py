"""Values as JSON bytes: the one form in which events are stored and states are answered."""

from __future__ import annotations

import base64
import dataclasses
import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import orjson
from langchain_core.messages import BaseMessage
from pydantic import BaseModel

_OPTIONS = orjson.OPT_NON_STR_KEYS

DEEPEST = 128
"""Levels of a value that orjson does not take: whoever recurses through it, does not fail."""

_TIMINGS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")
"""How long a prompt took tells what others had cached; users are not shown it."""


def to_json(value: object) -> bytes:
    """Freeze a value into one line of JSON.

    Messages and other pydantic models become objects, sets lists, bytes base64, decimals text, NaN
    null. What JSON cannot hold otherwise is named by its type, never by its content; so is what is
    nested too deeply.
    """
    try:
        return orjson.dumps(value, default=_default, option=_OPTIONS)
    except TypeError:
        # orjson refuses lone surrogates and integers beyond 64 bits, and depth; the escapes are
        # valid JSON.
        return json.dumps(_plain(value), ensure_ascii=True, separators=(",", ":")).encode()


def message_json(message: BaseMessage) -> dict[str, Any]:
    """A message as clients see it."""
    dumped = message.model_dump()
    metadata = dumped.get("response_metadata")
    if metadata:
        for name in _TIMINGS:
            metadata.pop(name, None)
    return dumped


_FORMS: tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...] = (
    (BaseMessage, message_json),
    (BaseModel, lambda model: model.model_dump()),
    ((set, frozenset, tuple), list),
    (Decimal, str),
    ((bytes, bytearray, memoryview), lambda data: base64.b64encode(bytes(data)).decode()),
    (BaseException, lambda error: {"error": type(error).__name__}),
)


def _default(value: object) -> Any:  # noqa: ANN401 - JSON of any kind
    for types, form in _FORMS:
        if isinstance(value, types):
            return form(value)
    return f"<{type(value).__name__}>"


def _plain(value: object, deep: int = DEEPEST) -> Any:  # noqa: ANN401 - JSON of any kind
    """What orjson could not take whole, taken apart."""
    if deep <= 0:
        return f"<{type(value).__name__}>"
    if isinstance(value, dict):
        return {str(key): _plain(item, deep - 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item, deep - 1) for item in value]
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return _plain(_part(value), deep - 1)


def _part(value: object) -> Any:  # noqa: ANN401 - JSON of any kind
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    try:
        return orjson.loads(orjson.dumps(value, default=_default, option=_OPTIONS))
    except TypeError:
        return _default(value)
