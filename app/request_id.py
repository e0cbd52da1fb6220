"""The id of the request that code works for: what operators find its log lines by.

The web makes it or takes it from whoever asks, a run keeps that of the request that made it. It is
a name for one way through the processes and no more: it opens nothing, and no decision is made by
it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import structlog

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager

HEADER: Final = "X-Request-Id"
"""What carries it in HTTP, from clients, back to them, and to model servers."""
META: Final = "stoa/request_id"
"""Its name in the ``_meta`` of a tool's call."""

_NAME = "request_id"
_SANE = re.compile(rb"[0-9A-Fa-f-]{8,64}")
"""A number, as UUIDs and trace ids are: words would be what somebody wrote, and a key a secret."""


def taken_or_made(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The one that a request carries, if it is a number as such ids are, or a new one."""
    given = [value for name, value in headers if name == HEADER.lower().encode()]
    if len(given) == 1 and _SANE.fullmatch(given[0]):
        return given[0].decode()
    return uuid4().hex


def working_for(request_id: str) -> AbstractContextManager[None]:
    """Have every log line of the block, and of the tasks it starts, name the request."""
    return structlog.contextvars.bound_contextvars(**{_NAME: request_id})


def work_for(request_id: str | None) -> None:
    """The same, for the rest of this task."""
    if request_id is not None:
        structlog.contextvars.bind_contextvars(**{_NAME: request_id})


def current_request_id() -> str | None:
    """The request that this code works for; None if it works for none."""
    found = structlog.contextvars.get_contextvars().get(_NAME)
    return found if isinstance(found, str) else None
