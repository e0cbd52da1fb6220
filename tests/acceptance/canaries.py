"""Requests with a canary for all that each route takes, made from the service's own description."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

SENTENCE = "The canary keeps the key of the lighthouse"
SECRET = "canary-key-8c1f2a94d7"
LEFT_OUT = frozenset({"join_thread_stream", "follow_own_events", "leave"})
"""Two without an end, and one after which nobody is there to ask."""
_DEEPEST = 6


@dataclass(frozen=True)
class Said:
    """A request, well or badly made."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    content: str | None


def said_everywhere(document: dict[str, Any], known: dict[str, str]) -> Iterator[Said]:
    """To each route, by a canary for an id and by one that the person has, all kinds of bodies."""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if operation["operationId"] not in LEFT_OUT:
                yield from _said_to(document, method, path, operation, known)


def _said_to(
    document: dict[str, Any], method: str, path: str, operation: Any, known: dict[str, str]
) -> Iterator[Said]:
    parameters = operation.get("parameters", ())
    query = {each["name"]: SENTENCE for each in parameters if each["in"] == "query"}
    headers = {each["name"]: SECRET for each in parameters if each["in"] == "header"}
    names = [each["name"] for each in parameters if each["in"] == "path"]
    strange = path.format(**dict.fromkeys(names, SECRET))
    own = path.format(**{name: known.get(name, SECRET) for name in names})
    for kind, content in _bodies(document, operation):
        asked = {**headers, **({"content-type": kind} if kind else {})}
        yield Said(method, own, {}, asked, content)
    yield Said(method, strange, query, headers, content)
    yield Said(method, own, query, headers, content)


def _bodies(document: dict[str, Any], operation: Any) -> Iterator[tuple[str | None, str | None]]:
    """Kinds and contents: nothing where the route takes nothing; that as its last one, too."""
    contents = operation.get("requestBody", {}).get("content", {})
    for kind, declared in contents.items():
        example = declared.get("example", {})
        filled = _filled(document, declared.get("schema", {}))
        spoilt = [{**example, name: {SENTENCE: SENTENCE}} for name in (*example, SENTENCE)]
        for body in (filled, [SENTENCE], SENTENCE, *spoilt):
            yield kind, json.dumps(body)
        yield kind, f'{{"{SENTENCE}": '
        yield f"text/{SECRET}", SENTENCE
    yield None, None


def _filled(document: dict[str, Any], schema: Any, depth: int = 0) -> Any:
    """Something of a schema's shape with canaries for all texts and names, wherever one fits."""
    if depth > _DEEPEST:
        return SENTENCE
    inner = _inner(document, schema)
    if inner is not None:
        return _filled(document, inner, depth + 1)
    match schema.get("type"):
        case "object":
            fields = schema.get("properties", {})
            filled = {name: _filled(document, each, depth + 1) for name, each in fields.items()}
            return {**filled, SENTENCE: SENTENCE} if _takes_any(schema) else filled
        case "array":
            return [_filled(document, schema.get("items", {}), depth + 1)]
        case "integer" | "number" | "boolean":
            return 1
        case _:
            return schema.get("const", SENTENCE)


def _inner(document: dict[str, Any], schema: Any) -> Any:
    """What a schema stands for: that which it refers to, or the first of its choices."""
    if "$ref" in schema:
        parts = schema["$ref"].removeprefix("#/").split("/")
        return reduce(dict.__getitem__, parts, document)
    choices = (schema[each][0] for each in ("anyOf", "oneOf", "allOf") if each in schema)
    return next(choices, None)


def _takes_any(schema: Any) -> bool:
    return bool(schema.get("additionalProperties", True))
