"""What a person fills in for a tool's server, checked against the form that the server sent. Pure.

A form is MCP's small part of JSON Schema: one level of plain values and of lists to choose from.
Nothing else that a server writes into it is followed: a reference would be fetched, a pattern could
keep the process busy for ever.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator

MOST_CHOSEN = 100
"""Of one list: each is looked for among all that may be chosen."""

_TYPES = ("string", "number", "integer", "boolean", "array")
_BOUNDS = ("minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems")
_NAME = re.compile(r"[\w.-]{1,64}")


def check_content(schema: Mapping[str, Any], content: object) -> str | None:
    """What first is wrong with a filled-in form, by field and rule; None if nothing is."""
    validator = Draft202012Validator(_form(schema))
    error = next(validator.iter_errors(content), None)
    if error is None:
        return None
    name = str(error.path[0]) if error.path else ""
    return f"`{name}` ({error.validator})" if _NAME.fullmatch(name) else str(error.validator)


def _form(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    fields = properties if isinstance(properties, Mapping) else {}
    required = schema.get("required")
    return {
        "type": "object",
        "properties": {str(name): _field(each) for name, each in fields.items()},
        "required": [name for name in fields if isinstance(required, list) and name in required],
        "additionalProperties": False,
    }


def _field(given: object) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        return {"type": ["string", "number", "boolean"]}
    kind = given.get("type")
    field: dict[str, Any] = {"type": kind if kind in _TYPES else "string"}
    field |= {name: given[name] for name in _BOUNDS if _is_number(given.get(name))}
    if (choices := _choices(given)) is not None:
        field["enum"] = choices
    if field["type"] == "array":
        field["maxItems"] = min(field.get("maxItems", MOST_CHOSEN), MOST_CHOSEN)
        items = given.get("items")
        chosen = _choices(items) if isinstance(items, Mapping) else None
        field["items"] = {"type": "string", **({} if chosen is None else {"enum": chosen})}
    return field


def _choices(given: Mapping[str, Any]) -> list[Any] | None:
    """What may be chosen: listed by itself, or each with a title."""
    if isinstance(given.get("enum"), list):
        return list(given["enum"])
    for titled in ("oneOf", "anyOf"):
        if isinstance(given.get(titled), list):
            return [each.get("const") for each in given[titled] if isinstance(each, Mapping)]
    return [given["const"]] if "const" in given else None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
