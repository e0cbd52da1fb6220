"""Whether a call's arguments fit its tool, found out in bounded time. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from jsonschema import Draft202012Validator, ValidationError, validators

from app.tools.mcp.schemas import Schema, is_reserved
from app.tools.texts import shortened

MOST_CHARACTERS = 256 * 1024
DEEPEST = 32
MOST_CHECKS = 50_000
"""Keywords that are looked at; what is left then is for the server to judge."""
_MOST_COMPLAINTS = 5
_COMPLAINT_LENGTH = 200

_checks: ContextVar[int] = ContextVar("checks")


class _Enough(Exception):
    """As much was looked at as may be."""


def _counted(keyword: Callable[..., Any]) -> Callable[..., Iterator[ValidationError]]:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:  # noqa: ANN401 - as the library calls it
        _checks.set(left := _checks.get() - 1)
        if left < 0:
            raise _Enough
        yield from keyword(validator, value, instance, schema) or ()

    return check


_VALIDATOR = validators.extend(
    Draft202012Validator,
    {name: _counted(keyword) for name, keyword in Draft202012Validator.VALIDATORS.items()},
)


def complaint_about(arguments: Mapping[str, Any], schema: Schema) -> str | None:
    """What is wrong with the arguments, in words for the model; None where nothing is.

    ``schema`` is one of ``visible_schema``: without references, patterns and the like, which could
    take any time.
    """
    reserved = sorted(name for name in arguments if is_reserved(name))
    if reserved:
        names = ", ".join(f"`{shortened(name, 40)}`" for name in reserved[:_MOST_COMPLAINTS])
        return f"The arguments {names} are not yours to choose: leave them out."
    if not _is_shallow(arguments, DEEPEST):
        return "The arguments are nested too deeply."
    if len(json.dumps(arguments)) > MOST_CHARACTERS:
        return "The arguments are too long."
    wrong = _violations(arguments, schema)
    return f"The arguments do not fit the tool: {'; '.join(wrong)}." if wrong else None


def _violations(arguments: Mapping[str, Any], schema: Schema) -> list[str]:
    token = _checks.set(MOST_CHECKS)
    found: list[str] = []
    try:
        for error in _VALIDATOR(schema).iter_errors(arguments):
            found.append(_said(error))
            if len(found) >= _MOST_COMPLAINTS:
                break
    except _Enough:
        pass
    finally:
        _checks.reset(token)
    return found


def _said(error: ValidationError) -> str:
    """Where and what, without quoting what was sent: it may be long."""
    where = ".".join(map(str, error.absolute_path)) or "arguments"
    if error.validator == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        what = f"misses {', '.join(missing)}"
    elif error.validator == "additionalProperties":
        known = error.schema.get("properties", {})
        what = f"has no {', '.join(name for name in error.instance if name not in known)}"
    elif error.validator == "anyOf":
        what = "fits none of the ways in which it may be given"
    else:
        what = f"must have {error.validator} {json.dumps(error.validator_value)}"
    return shortened(f"`{where}` {what}", _COMPLAINT_LENGTH)


def _is_shallow(value: object, deep: int) -> bool:
    if not isinstance(value, Mapping | list):
        return True
    inner = value.values() if isinstance(value, Mapping) else value
    return deep > 0 and all(_is_shallow(each, deep - 1) for each in inner)
