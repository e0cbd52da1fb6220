"""A tool's schema as the model is shown it: without what only we may say, and within bounds.

Servers write schemas as they like; a model's API refuses the whole request for one that it cannot
read, and a reference may stand for a thousand others. What is shown is rebuilt from keywords that
everybody reads: no references, so many nodes, so deep. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from app.tools.texts import is_kept, shortened, storable

Schema = dict[str, Any]
T = TypeVar("T")

MOST_NODES = 1000
"""Subschemas of one tool; what goes beyond them may be anything, and its server decides."""
DEEPEST = 12
LONGEST_TEXT = 1000
MOST_VALUES = 200
"""Of an enumeration, or of names that are required."""
MOST_CHARACTERS = 32 * 1024
"""Of all texts and names: what a reference stands for is written out as often as it is named."""

_RESERVED: Final = frozenset({"userid", "namespace", "tenant", "tenantid"})

_TYPES: Final = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_NUMBERS: Final = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
)
_TEXTS: Final = ("description", "format")


def is_reserved(argument: str) -> bool:
    """Whether an argument says whom a call is made for, which no model may choose."""
    return argument.replace("_", "").replace("-", "").lower() in _RESERVED


def visible_schema(declared: Mapping[str, Any]) -> Schema:
    """The schema of a tool's arguments that the model sees and that its calls are checked by."""
    schema = _Rebuilding(declared).of(declared, DEEPEST, is_top=True)
    schema["type"] = "object"
    schema.setdefault("properties", {})
    return schema


class _Rebuilding:
    """One schema on its way."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = MOST_NODES
        self._characters = MOST_CHARACTERS

    def of(self, declared: object, deep: int, *, is_top: bool = False) -> Schema:
        """One node without what nobody reads; ``is_top``: it is about the arguments themselves."""
        self._left -= 1
        if not isinstance(declared, Mapping) or deep <= 0 or self._is_spent:
            return {}
        target = self._target(declared.get("$ref"))
        base = self.of(target, deep - 1, is_top=is_top) if target is not None else {}
        schema = {**base, **self._charged(_facts(declared))}
        self._add_properties(schema, declared, deep, is_top=is_top)
        if isinstance(declared.get("items"), Mapping):
            schema["items"] = self.of(declared["items"], deep - 1)
        self._add_rest(schema, declared, deep, is_top=is_top)
        for all_of in self._choices(declared, deep, is_top=is_top):
            schema["allOf"] = [*schema.get("allOf", ()), all_of]
        return schema

    @property
    def _is_spent(self) -> bool:
        return self._left < 0 or self._characters < 0

    def _charged(self, said: T) -> T:
        """What is written out, which leaves room for less."""
        self._characters -= _length(said)
        return said

    def _choices(self, declared: Mapping[str, Any], deep: int, *, is_top: bool) -> list[Schema]:
        """What must hold besides. Of options that are shown in part more than one may fit."""
        held: list[Schema] = []
        for name in ("allOf", "anyOf", "oneOf"):
            options = declared.get(name)
            if isinstance(options, list) and 0 < len(options) <= MOST_VALUES:
                shown = [self.of(option, deep - 1, is_top=is_top) for option in options]
                held.extend(shown if name == "allOf" else [{"anyOf": shown}])
        return held

    def _add_properties(
        self, schema: Schema, declared: Mapping[str, Any], deep: int, *, is_top: bool
    ) -> None:
        if isinstance(properties := declared.get("properties"), Mapping):
            names = self._charged([name for name, _ in _few(list(properties.items()))])
            shown = {
                name: self.of(properties[name], deep - 1)
                for name in names
                if name == storable(name) and not (is_top and is_reserved(name))
            }
            schema["properties"] = {**schema.get("properties", {}), **shown}
        if isinstance(required := declared.get("required"), Sequence):
            names = self._charged([name for name in _few(required) if isinstance(name, str)])
            schema["required"] = [
                *schema.get("required", ()),
                *(name for name in names if not (is_top and is_reserved(name))),
            ]

    def _add_rest(
        self, schema: Schema, declared: Mapping[str, Any], deep: int, *, is_top: bool
    ) -> None:
        """What other properties there may be: any, where patterns that are not shown say so."""
        rest = declared.get("additionalProperties")
        if "patternProperties" in declared:
            schema.pop("additionalProperties", None)
        elif isinstance(rest, bool):
            schema["additionalProperties"] = rest
        elif isinstance(rest, Mapping) and not is_top:
            schema["additionalProperties"] = self.of(rest, deep - 1)

    def _target(self, reference: object) -> object | None:
        """What a reference within this schema stands for; nothing is fetched."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        found: object = self._root
        for step in reference.lstrip("#").strip("/").split("/") if reference != "#" else ():
            name = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or name not in found:
                return None
            found = found[name]
        return found


def _facts(declared: Mapping[str, Any]) -> Schema:
    """The keywords that hold no further schemas, where they are what they must be."""
    facts: Schema = {}
    kind = declared.get("type")
    kinds = [kind] if isinstance(kind, str) else kind
    if isinstance(kinds, list) and kinds and all(_is_type(each) for each in kinds):
        facts["type"] = kind
    for name in _TEXTS:
        if isinstance(text := declared.get(name), str):
            facts[name] = shortened(storable(text), LONGEST_TEXT)
    for name in _NUMBERS:
        if _is_number(number := declared.get(name)):
            facts[name] = number
    values = declared.get("enum")
    if isinstance(values, list) and 0 < len(values) <= MOST_VALUES and all(map(_is_plain, values)):
        facts["enum"] = values
    for name in ("const", "default"):
        if name in declared and _is_plain(declared[name]):
            facts[name] = declared[name]
    return facts


def _is_type(kind: object) -> bool:
    return isinstance(kind, str) and kind in _TYPES


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and is_kept(value)


def _is_plain(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_TEXT and value == storable(value)
    return value is None or isinstance(value, bool) or _is_number(value)


def _length(said: object) -> int:
    """About as long as it is written."""
    if isinstance(said, Mapping):
        return sum(len(name) + _length(value) for name, value in said.items())
    if isinstance(said, list):
        return sum(map(_length, said))
    return len(said) if isinstance(said, str) else 8


def _few(each: Sequence[Any]) -> Sequence[Any]:
    return () if isinstance(each, str) else each[:MOST_VALUES]
