"""A thread's state inside an event, with or without its values.

A large state is stored as a template: its JSON with the values cut out that a checkpoint has. The
pieces and the values are joined as bytes, so that what is filled in later is, byte for byte, what
would have been stored whole. Pure: no database, no graph.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import orjson
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from app.runs.wire import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

WHOLE_BYTES = 4096
"""A state up to this size is stored whole: reading a checkpoint for it would cost more."""
_INLINE_BYTES = 256
"""Values up to this size stay in the template."""
_SCALARS = frozenset({str, int, float, bool, type(None)})
_MESSAGES = frozenset({AIMessage, HumanMessage, SystemMessage, ToolMessage})


@dataclass(frozen=True, slots=True)
class FrozenState:
    """An event's data as it was when it was emitted."""

    whole: bytes
    template: bytes | None = None
    """None where nothing can be left out, or is worth it."""
    left_out: frozenset[str] = frozenset()


def _itself(state: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON of any kind
    return state


def freeze_state(
    state: Mapping[str, Any],
    can_leave_out: Callable[[str, Any, bytes], bool],
    frame: Callable[[dict[str, Any]], Any] = _itself,
) -> FrozenState:
    """Freeze a state, and what it is told in.

    Args:
        state: its values by their keys.
        can_leave_out: whether a checkpoint has a value: by its key, itself and its JSON.
        frame: puts the state, once and unchanged, into what the event says.
    """
    parts = {key: to_json(value) for key, value in state.items()}
    pieces = _around(state, frame)
    whole = b"".join(_woven(pieces, list(parts.values())))
    if len(whole) <= WHOLE_BYTES:
        return FrozenState(whole)
    left_out = [
        key
        for key, part in parts.items()
        if len(part) > _INLINE_BYTES and can_leave_out(key, state[key], part)
    ]
    if not left_out:
        return FrozenState(whole)
    return FrozenState(whole, _template(pieces, parts, left_out), frozenset(left_out))


def filled(template: bytes, part_of: Callable[[str], bytes | None]) -> bytes | None:
    """The whole of a template; None where a value is not there any more, or is another."""
    told = orjson.loads(template)
    parts: list[bytes] = []
    for key, digest in told["left_out"]:
        part = part_of(key)
        if part is None or _digest(part) != digest:
            return None
        parts.append(part)
    return b"".join(_woven([piece.encode() for piece in told["pieces"]], parts))


def survives_storage(value: object) -> bool:
    """Whether a value comes back from a checkpoint as the same JSON for sure."""
    if type(value) in _SCALARS or type(value) in _MESSAGES:
        return True
    if type(value) is list:
        return all(map(survives_storage, value))
    if type(value) is dict:
        return all(type(key) is str and survives_storage(item) for key, item in value.items())
    return False


def _around(state: Mapping[str, Any], frame: Callable[[dict[str, Any]], Any]) -> list[bytes]:
    """The JSON before, between and after a state's values."""
    mark = uuid4().hex  # nothing that a person wrote can contain it
    framed = to_json(frame(dict.fromkeys(state, mark)))
    return re.split(b'"%b"' % mark.encode(), framed)


def _woven(pieces: Sequence[bytes], parts: Sequence[bytes]) -> list[bytes]:
    between = [each for pair in zip(pieces, parts, strict=False) for each in pair]
    return [*between, pieces[-1]]


def _template(
    pieces: Sequence[bytes], parts: Mapping[str, bytes], left_out: Sequence[str]
) -> bytes:
    merged = [pieces[0]]
    for (key, part), piece in zip(parts.items(), pieces[1:], strict=True):
        if key in left_out:
            merged.append(piece)
        else:
            merged[-1] += part + piece
    return orjson.dumps(
        {
            "pieces": [piece.decode() for piece in merged],
            "left_out": [(key, _digest(parts[key])) for key in left_out],
        }
    )


def _digest(part: bytes) -> str:
    return hashlib.blake2b(part, digest_size=8).hexdigest()
