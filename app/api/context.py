"""What is known about a request beside what it carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from typing import Any

    from tenancy.errors import LimitReached
    from tenancy.principal import UserId
    from tenancy.scheduler.requests import Admission

_KEY = "stoa.context"


@dataclass(slots=True)
class RequestContext:
    """One request: its id, and whose it is once that is known."""

    request_id: str
    user_id: UserId | None = None
    admission: Admission | None = None
    """What the user may use, once the request was counted."""
    refusal: LimitReached | None = None
    """The limit that the request ran into."""


def put_context(scope: MutableMapping[str, Any], context: RequestContext) -> None:
    """Attach a context to an ASGI scope."""
    scope[_KEY] = context


def context_of(scope: MutableMapping[str, Any]) -> RequestContext:
    """The context that the request boundary attached."""
    context: RequestContext = scope[_KEY]
    return context


def route_template(scope: MutableMapping[str, Any]) -> str:
    """The path with names for values: the only form of it that is logged."""
    return str(getattr(scope.get("route"), "path", None) or "unmatched")
