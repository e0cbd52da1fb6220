"""JSON answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from app.runs.wire import to_json

if TYPE_CHECKING:
    from collections.abc import Mapping


def json_answer(
    value: object, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A JSON response; whoever made the value vouches for its shape."""
    return Response(to_json(value), status, dict(headers or {}), "application/json")
