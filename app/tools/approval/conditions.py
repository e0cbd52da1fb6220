"""Conditions on a call's arguments: a part of JSON Schema that is decided in bounded time. Pure.

An operator's condition stands between a model and what it may do unasked, so what cannot be known
is refused when it is read: keywords that nobody checks, references, and conditions that would hold
for arguments that are not there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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
_EXACT: Final = ("const", "enum")
_IN_PLACE: Final = frozenset({"allOf", "anyOf", "oneOf", "not"})
"""Their schemas are about the same value."""


class Undecidable(Exception):
    """The arguments are such that no condition can be asked about them."""


def require_condition(
    schema: Mapping[str, Any], *, loosens: bool = False, tightens: bool = False
) -> None:
    """Make sure that a condition can be used.

    Where it ``loosens``, it must not hold for arguments that are left out or of another kind than
    it speaks of. Where it ``tightens``, what it does not hold for is let through more easily: it
    must hold for those of another kind.

    Raises:
        ValueError: it cannot; the message says what to do, and quotes no value.
    """
    try:
        length = len(json.dumps(schema, allow_nan=False))
    except (ValueError, RecursionError):
        raise ValueError("is not JSON, or is nested too deeply") from None
    if length > LONGEST:
        raise ValueError(f"is longer than {LONGEST} characters")
    for number, (node, place) in enumerate(_nodes(schema), start=1):
        if number > MOST_NODES:
            raise ValueError(f"has more than {MOST_NODES} schemas in it")
        if unknown := sorted(set(node) - _KNOWN):
            raise ValueError(f"`{unknown[0]}` cannot be used in a condition; leave it out")
        if loosens and place.turns:
            _require_reversibility(node, place)
        elif loosens or (tightens and place.turns):
            _require_strictness(node, is_top=place.is_top)
        if tightens and not place.turns:
            _require_reach(node, is_top=place.is_top)
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


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in a condition a schema stands."""

    turns: int = 0
    """Within how many ``not``: there, what holds too easily makes the whole hold less."""
    is_top: bool = True
    """Whether it is about the arguments themselves, and not about one of them."""
    is_typed: bool = True
    """Whether the kind of value that it is about is said beside it."""

    def of_inner(self, node: Mapping[str, Any], keyword: str) -> _Place:
        """The place of a schema that this one's node holds."""
        is_same = keyword in _IN_PLACE
        return _Place(
            self.turns + (keyword == "not"),
            is_top=self.is_top and is_same,
            is_typed=is_same and (self.is_typed or "type" in node),
        )


_TOP = _Place()


@lru_cache(maxsize=1024)
def _compiled(condition: str) -> Draft202012Validator:
    options = RegexOptions(size_limit=_PATTERN_BYTES, dfa_size_limit=_PATTERN_BYTES)
    return Draft202012Validator(json.loads(condition), pattern_options=options)


def _nodes(
    schema: object, deep: int = DEEPEST, place: _Place = _TOP
) -> Iterator[tuple[Mapping[str, Any], _Place]]:
    """Each schema within this one, and what is known of its place.

    Raises:
        ValueError: there is something that is no schema, or one that is too deep.
    """
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        raise ValueError("must be a JSON Schema: an object")  # noqa: TRY004 - pydantic's to hear
    if deep == 0:
        raise ValueError(f"is nested deeper than {DEEPEST} schemas")
    yield schema, place
    for name, how in _HOLDING.items():
        for inner in _held(schema.get(name), how) if name in schema else ():
            yield from _nodes(inner, deep - 1, place.of_inner(schema, name))


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


def _require_reach(node: Mapping[str, Any], *, is_top: bool) -> None:
    """A condition that fails for another kind of value leaves that to a looser rule."""
    bounds = sorted(name for name in _KINDS.keys() & node.keys() if name != "required")
    if bounds and "type" in node and not (is_top and _KINDS[bounds[0]] == "object"):
        raise ValueError(
            f"`{bounds[0]}` beside `type` lets anything of another kind through, to the looser rule"
            " that follows: leave out the `type`, or put the looser rule first"
        )
    if "oneOf" in node:
        raise ValueError("`oneOf` fails where two hold, and a looser rule follows: say `anyOf`")


def _require_reversibility(node: Mapping[str, Any], place: _Place) -> None:
    """Within ``not``, what holds for one kind of value only lets all others through."""
    if place.turns > 1:
        raise ValueError("has a `not` within a `not`: say what must hold instead")
    for keyword in ("type", "oneOf"):
        if keyword in node:
            raise ValueError(
                f"`{keyword}` within `not` lets anything of another kind through:"
                " say what must hold instead, or leave it out there"
            )
    if "properties" in node and (names := _names(node.get("required"))):
        raise ValueError(
            f"`not` would hold for calls without `{min(names)}` too: leave out `required` there"
        )
    if not place.is_typed and (exact := [each for each in _EXACT if each in node]):
        raise ValueError(
            f"`{exact[0]}` within `not` lets anything of another kind through: put the `not` where"
            " the value's `type` is said"
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
