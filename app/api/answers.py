"""JSON answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from app.runs.large_work import json_in_turn
from app.runs.wire import to_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Mapping

    from tenancy.principal import UserId

MOST_BYTES = 8_000_000
"""A list of states ends once it is this large: each of them may hold a whole conversation."""


def json_answer(
    value: object, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A JSON response; whoever made the value vouches for its shape."""
    return Response(to_json(value), status, dict(headers or {}), "application/json")


async def state_answer(user_id: UserId, value: object) -> Response:
    """A JSON response that may hold a whole conversation of a person's."""
    return json_bytes_answer(await json_in_turn(user_id, value))


async def bounded_list(user_id: UserId, items: AsyncIterable[object]) -> tuple[bytes, int]:
    """A JSON list of as many of a person's items as fit, at least one, and how many those are."""
    parts: list[bytes] = []
    size = 0
    async for item in items:
        parts.append(await json_in_turn(user_id, item))
        size += len(parts[-1])
        if size >= MOST_BYTES:
            break
    return b"[" + b",".join(parts) + b"]", len(parts)


def json_bytes_answer(body: bytes, *, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON response whose body was made already."""
    return Response(body, 200, dict(headers or {}), "application/json")
