"""Conditions on a call's arguments: a part of JSON Schema that is decided in bounded time. Pure.

An operator's condition stands between a model and what it may do unasked, so what cannot be known
is refused when it is read: keywords that nobody checks, references, and conditions that would hold
for arguments that are not there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, Literal

from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError

MOST_NODES = 100
"""Subschemas of one condition."""
DEEPEST = 12
LONGEST = 16 * 1024
"""Characters of one condition."""
LONGEST_ARGUMENTS = 256 * 1024
"""Characters. No condition is asked about longer ones, or deeper ones."""
DEEPEST_ARGUMENTS = 32
_PATTERN_BYTES = 1024 * 1024
"""What a pattern may take once it is compiled. It is matched in a time that grows with the text."""

_Holds = Literal["one", "list", "map"]
_HOLDING: Final[Mapping[str, _Holds]] = {
    **dict.fromkeys(("items", "additionalProperties", "contains", "propertyNames", "not"), "one"),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), "list"),
    "properties": "map",
}
"""Keywords with schemas in them, and how they hold these."""
_KINDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), "number"),
    **dict.fromkeys(("minLength", "maxLength", "pattern"), "string"),
    **dict.fromkeys(("items", "prefixItems", "contains", "minItems", "maxItems"), "array"),
    **dict.fromkeys(("minProperties", "maxProperties", "required", "properties"), "object"),
    **dict.fromkeys(("additionalProperties", "propertyNames"), "object"),
}
"""Keywords that say something of one kind of value only, and hold for all others."""
_PLAIN: Final = frozenset({"type", "const", "enum"})
_REMARKS: Final = frozenset({"title", "description", "$comment"})
_KNOWN: Final = frozenset(_HOLDING) | frozenset(_KINDS) | _PLAIN | _REMARKS
_IN_PLACE: Final = frozenset({"allOf", "anyOf", "oneOf", "not"})
"""Their schemas are about the same value."""


class Undecidable(Exception):
    """The arguments are such that no condition can be asked about them."""


def require_condition(schema: Mapping[str, Any], *, loosens: bool) -> None:
    """Make sure that a condition can be used.

    Where it ``loosens``, it must not hold for arguments that are left out or of another kind than
    it speaks of.

    Raises:
        ValueError: it cannot; the message says what to do, and quotes no value.
    """
    try:
        length = len(json.dumps(schema, allow_nan=False))
    except (ValueError, RecursionError):
        raise ValueError("is not JSON, or is nested too deeply") from None
    if length > LONGEST:
        raise ValueError(f"is longer than {LONGEST} characters")
    for number, (node, is_turned, is_top) in enumerate(_nodes(schema), start=1):
        if number > MOST_NODES:
            raise ValueError(f"has more than {MOST_NODES} schemas in it")
        if unknown := sorted(set(node) - _KNOWN):
            raise ValueError(f"`{unknown[0]}` cannot be used in a condition; leave it out")
        if loosens and not is_turned:
            _require_strictness(node, is_top=is_top)
    try:
        _compiled(json.dumps(schema))
    except (ValidationError, ValueError):
        raise ValueError(
            "is not a JSON Schema, or has a pattern that is not a plain regular expression"
            " (no lookaround, no backreferences)"
        ) from None


def holds(condition: str, arguments: Mapping[str, Any]) -> bool:
    """Whether the arguments fit a condition, which is given as JSON text.

    The arguments must be such that :func:`require_decidable` has nothing against them.
    """
    return _compiled(condition).is_valid(arguments)


def require_decidable(arguments: Mapping[str, Any]) -> None:
    """Make sure that conditions can be asked about a call's arguments.

    Raises:
        Undecidable: they are too long, too deep, or no JSON.
    """
    if not _is_shallow(arguments, DEEPEST_ARGUMENTS):
        raise Undecidable
    try:
        text = json.dumps(arguments, allow_nan=False, ensure_ascii=False)
        text.encode()  # half of a surrogate pair is no text
    except (ValueError, TypeError):
        raise Undecidable from None
    if len(text) > LONGEST_ARGUMENTS:
        raise Undecidable


@lru_cache(maxsize=1024)
def _compiled(condition: str) -> Draft202012Validator:
    options = RegexOptions(size_limit=_PATTERN_BYTES, dfa_size_limit=_PATTERN_BYTES)
    return Draft202012Validator(json.loads(condition), pattern_options=options)


def _nodes(
    schema: object, deep: int = DEEPEST, *, is_turned: bool = False, is_top: bool = True
) -> Iterator[tuple[Mapping[str, Any], bool, bool]]:
    """Each schema within this one, and what is known of its place.

    First whether that is within a ``not``, where what holds too easily makes the whole hold less;
    then whether it is about the arguments themselves, and not about one of them.

    Raises:
        ValueError: there is something that is no schema, or one that is too deep.
    """
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        raise ValueError("must be a JSON Schema: an object")  # noqa: TRY004 - pydantic's to hear
    if deep == 0:
        raise ValueError(f"is nested deeper than {DEEPEST} schemas")
    yield schema, is_turned, is_top
    for name, how in _HOLDING.items():
        for inner in _held(schema.get(name), how) if name in schema else ():
            turned, same = is_turned or name == "not", is_top and name in _IN_PLACE
            yield from _nodes(inner, deep - 1, is_turned=turned, is_top=same)


def _held(value: object, how: _Holds) -> Iterator[object]:
    match how, value:
        case "map", Mapping():
            yield from value.values()
        case "list", list():
            yield from value
        case "one", _:
            yield value
        case _:
            raise ValueError("must be a JSON Schema")


def _require_strictness(node: Mapping[str, Any], *, is_top: bool) -> None:
    """A condition that holds where nothing was said would let calls through that nobody meant."""
    missing = set(node.get("properties", ())) - set(_names(node.get("required")))
    if missing:
        raise ValueError(
            f"would hold for calls without `{min(missing)}` too: name it under `required`"
        )
    for keyword in sorted(_KINDS.keys() & node.keys()):
        kind = _KINDS[keyword]
        kinds = {*_names(node.get("type"))}
        fits = kinds and kinds <= ({"number", "integer"} if kind == "number" else {kind})
        if not fits and not (is_top and kind == "object"):
            raise ValueError(
                f"`{keyword}` would hold for anything that is no {kind} too:"
                f' say `"type": "{kind}"` beside it'
            )


def _names(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _is_shallow(value: object, deep: int) -> bool:
    if not isinstance(value, Mapping | list | tuple):
        return True
    inner = value.values() if isinstance(value, Mapping) else value
    return deep > 0 and all(_is_shallow(each, deep - 1) for each in inner)
