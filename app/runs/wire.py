"""Values as JSON bytes: the one form in which events are stored and states are answered."""

from __future__ import annotations

import base64
import dataclasses
import json
import math
from collections.abc import Callable
from contextlib import suppress
from datetime import date, time
from decimal import Decimal
from enum import Enum
from typing import Any

import orjson
from langchain_core.messages import BaseMessage
from pydantic import BaseModel

_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATETIME
"""Times are written here: where a zone fails when it is asked, orjson takes the process with it."""

DEEPEST = 128
"""Levels of a value that orjson does not take: whoever recurses through it, does not fail."""
_MOST_BITS = 4096
"""Longer integers Python does not write in decimals."""

_TOO_DEEP = "Recursion limit reached"
_SCALARS = frozenset({str, int, float, bool, type(None)})
_TIMINGS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")
"""How long a prompt took tells what others had cached; users are not shown it."""


def to_json(value: object) -> bytes:
    """Freeze a value into one line of JSON, while other threads may change it.

    Messages and other pydantic models become objects, sets lists, bytes base64, decimals text, NaN
    and infinity null. What JSON cannot hold otherwise is named by its type, never by its content;
    so is what fails when it is asked for its form, what contains itself, and what is nested too
    deeply.
    """
    try:
        return orjson.dumps(value, option=_OPTIONS)  # no other thread has a turn within
    except TypeError as error:
        if str(error) == _TOO_DEEP:
            return _taken_apart(value)
    try:
        return orjson.dumps(_held(value), default=_default, option=_OPTIONS)
    except TypeError:
        return _taken_apart(value)
    except Exception:  # noqa: BLE001 - something in it lies about what it is
        return to_json(_named(value))


def _taken_apart(value: object) -> bytes:
    """What orjson refuses: lone surrogates, integers beyond 64 bits, and depth."""
    try:
        plain = _plain(value, frozenset())
    except Exception:  # noqa: BLE001 - as above
        plain = _named(value)
    return json.dumps(plain, ensure_ascii=True, separators=(",", ":")).encode()


def copy_of(value: object) -> Any:  # noqa: ANN401 - JSON of any kind
    """The value in the form in which it is frozen, of which nobody else holds any part."""
    return json.loads(to_json(value))


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
    ((date, time), lambda each: each.isoformat()),
    ((set, frozenset, tuple), list),
    (Decimal, str),
    (Enum, lambda each: each.value),
    ((bytes, bytearray, memoryview), lambda data: base64.b64encode(bytes(data)).decode()),
    (BaseException, lambda error: {"error": type(error).__name__}),
    (orjson.Fragment, lambda fragment: json.loads(fragment.contents)),
)


def _default(value: object) -> Any:  # noqa: ANN401 - JSON of any kind
    try:
        for types, form in _FORMS:
            if _is(value, types):
                return form(value)
    except Exception:  # noqa: BLE001, S110 - its author's code, whose words go nowhere
        pass
    return _named(value)


def _is(value: object, types: type | tuple[type, ...]) -> bool:
    """Whether it is of one of these, whatever it says of itself."""
    return issubclass(type(value), types)


def _named(value: object) -> str:
    return f"<{type.__dict__['__name__'].__get__(type(value))}>"


def _held(value: object, deep: int = DEEPEST) -> Any:  # noqa: ANN401 - JSON of any kind
    """The same value in containers of our own.

    While orjson asks for the form of something that it does not know, other threads have their
    turns; it keeps no hold of a container that they take from under it, and the process dies.

    Raises:
        TypeError: it is nested too deeply.
    """
    if deep <= 0:
        raise TypeError
    if type(value) in _SCALARS:
        return value
    if _is(value, BaseModel):
        return _default(value)
    parts = _parts(value)
    if parts is None:
        return value if _is_plain(value) else _default(value)
    try:
        return orjson.Fragment(orjson.dumps(value, option=_OPTIONS))
    except TypeError:
        if isinstance(parts, dict):
            return {key: _held(item, deep - 1) for key, item in parts.items()}
        return [_held(item, deep - 1) for item in parts]


def _parts(value: Any) -> dict[Any, Any] | list[Any] | None:  # noqa: ANN401 - any
    """What a container holds just now; None of what is none, or does not tell."""
    with suppress(Exception):  # its author's code, whose words go nowhere
        if _is(value, dict):
            return dict(value)
        if _is(value, (list, tuple, set, frozenset)):
            return list(value)
    if dataclasses.is_dataclass(type(value)):
        names = [each.name for each in dataclasses.fields(value)]
        return {name: _field(value, name) for name in names if not name.startswith("_")}
    return None


def _field(value: object, name: str) -> Any:  # noqa: ANN401 - whatever it holds
    try:
        return getattr(value, name)
    except Exception:  # noqa: BLE001 - its author's code, whose words go nowhere
        return None


def _is_plain(value: object) -> bool:
    """Whether orjson takes it without a question."""
    try:
        orjson.dumps(value, option=_OPTIONS)
    except TypeError:
        return _is(value, (str, int))  # refused for their content
    return True


def _plain(value: object, around: frozenset[int], deep: int = DEEPEST) -> Any:  # noqa: ANN401 - JSON
    """What orjson could not take whole, taken apart; ``around`` are the containers it is in."""
    if deep <= 0 or id(value) in around:
        return _named(value)
    parts = _parts(value)
    if parts is None:
        return _leaf(value, around, deep)
    within = around | {id(value)}
    if isinstance(parts, dict):
        return {_key(key): _plain(item, within, deep - 1) for key, item in parts.items()}
    return [_plain(item, within, deep - 1) for item in parts]


def _leaf(value: Any, around: frozenset[int], deep: int) -> Any:  # noqa: ANN401 - JSON of any kind
    if value is None or _is(value, (bool, str)):
        return value
    if _is(value, int):
        return value if int.bit_length(value) <= _MOST_BITS else _named(value)
    if _is(value, float):
        return value if math.isfinite(value) else None
    try:
        return orjson.loads(orjson.dumps(value, option=_OPTIONS))
    except TypeError:
        return _plain(_default(value), around, deep - 1)


def _key(key: object) -> str:
    if isinstance(key, str):
        return key
    try:
        (name,) = orjson.loads(orjson.dumps({key: None}, option=_OPTIONS))
    except TypeError:
        return _named(key)
    return str(name)
