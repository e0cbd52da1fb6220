"""Read the few fields that a sign-in sends, as a form or as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

if TYPE_CHECKING:
    from starlette.requests import Request

_LARGEST = 16 * 1024
_MOST_FIELDS = 10


class UnusableForm(Exception):
    """The body is too large, or neither a form nor a JSON object."""


async def read_fields(request: Request) -> dict[str, object]:
    """Return the body's fields.

    Raises:
        UnusableForm: there are none to be read.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST:
            raise UnusableForm
    try:
        if request.headers.get("content-type", "").startswith("application/json"):
            fields = json.loads(bytes(body))
        else:
            fields = dict(parse_qsl(body.decode("utf-8"), max_num_fields=_MOST_FIELDS))
    except (ValueError, RecursionError) as error:
        raise UnusableForm from error
    if not isinstance(fields, dict):
        raise UnusableForm
    return fields
