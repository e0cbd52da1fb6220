"""Reading what a client sends: bounded while it arrives, strict about what it is."""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.requests import ClientDisconnect

from app.api.dependencies import PrincipalDep, ServicesDep
from app.api.errors import field_errors
from app.api.idempotency import note_body
from app.api.refusals import BodyTooLarge, InvalidFields, MalformedRequest, UnsupportedMediaType
from app.runs.input_rules import check_no_constructor
from app.runs.large_work import in_turn
from app.runs.sizes import LARGE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_LEVELS = 100
MOST_VALUES = 100_000
"""Values and keys in a body: each costs many times what it takes on the wire."""
_LENGTH = re.compile(r"[0-9]{1,18}")
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{]|[^\s,:"\[\]{}\\]++', re.DOTALL)
"""A string, the beginning of a list or an object, or another value: never read twice."""

_MOST_BYTES = 256 * 1024

Model = TypeVar("Model", bound=BaseModel)


def json_body(model: type[Model], *, holds_input: bool = False) -> Callable[..., Awaitable[Model]]:
    """A dependency that reads the body as one model, once it is known who is asking.

    Only a body that holds a run's input may be as large as the settings say.
    """

    async def read(request: Request, services: ServicesDep, principal: PrincipalDep) -> Model:
        most = services.settings.max_body_bytes
        raw = await read_bounded(request, most if holds_input else min(most, _MOST_BYTES))
        note_body(request.scope, raw)
        if len(raw) <= LARGE_BYTES:
            return parse_body(raw, model)
        return await in_turn(principal.user_id, parse_body, raw, model)

    return read


def parse_body(raw: bytes, model: type[Model]) -> Model:
    """Parse and validate a body; an empty one stands for an object without fields.

    Raises:
        MalformedRequest: it is not JSON, too deep, or of too many values.
        InvalidInput: it holds one of LangChain's serialised constructors.
        InvalidFields: it is not what the model takes.
    """
    _check_count(raw)
    try:
        value = from_json(raw, allow_inf_nan=False) if raw else {}
    except ValueError:
        raise MalformedRequest("The body is not valid JSON.") from None
    _check_values(value)
    try:
        return model.model_validate(value)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        raise InvalidFields(
            field_errors([dict(each) for each in found], prefix=("body",))
        ) from None


async def read_bounded(request: Request, most: int) -> bytes:
    """Read a body, and stop as soon as it is known to be too large."""
    if _declared_length(request) > most:
        raise BodyTooLarge
    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise BodyTooLarge
            parts.append(part)
    except ClientDisconnect:
        raise MalformedRequest("The body ended early.") from None
    if size and not _is_json(request):
        raise UnsupportedMediaType
    return b"".join(parts)


def _declared_length(request: Request) -> int:
    declared = request.headers.get("content-length", "")
    return int(declared) if _LENGTH.fullmatch(declared) else 0


def _is_json(request: Request) -> bool:
    media_type = request.headers.get("content-type", "").partition(";")[0]
    return media_type.strip().lower() == "application/json"


def _check_count(raw: bytes) -> None:
    """Refuse a body of too many values before anything is made of them."""
    if any(True for _ in islice(_TOKEN.finditer(raw), MOST_VALUES, None)):
        raise MalformedRequest(f"The body has more than {MOST_VALUES} values.")


def _check_values(value: object) -> None:
    """Refuse what nothing can store, what is too deep, and what LangChain would construct."""
    level: list[Any] = [value]
    for _ in range(MOST_LEVELS):
        level = [child for each in level for child in _children(each)]
        if not level:
            return
    raise MalformedRequest(f"The body is nested deeper than {MOST_LEVELS} levels.")


def _children(value: Any) -> Iterator[Any]:  # noqa: ANN401 - JSON of any kind
    if isinstance(value, str):
        if "\0" in value:
            raise InvalidFields([{"loc": ["body"], "msg": "Text must not contain NUL."}])
    elif isinstance(value, dict):
        check_no_constructor(value)
        yield from value
        yield from value.values()
    elif isinstance(value, list):
        yield from value
    elif isinstance(value, float) and not math.isfinite(value):
        raise InvalidFields([{"loc": ["body"], "msg": "Numbers must be finite."}])
