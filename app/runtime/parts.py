"""How parts of the service stand, as people are told: why is a code, never an error's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.connections.standing import NOT_ALLOWED
from tenancy.scheduler.components import Component

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from app.connections.standing import UserServer

PartStanding = tuple[str, str, int | None]
DATABASE = "database"
DATABASE_UNREACHABLE = "database_unreachable"
_CONNECTION = "connection:"
_UNSAID = "failed"
_TRIED = ("unavailable", "checking", "unknown")
"""How a link that fails stands until it works; otherwise it is its person who is waited for."""


def own_parts(servers: Iterable[UserServer]) -> list[Component]:
    """A person's own links: those that work, and those that do not though nothing is asked of them.

    One that fails stays so until it works: while it is looked at again, nothing is known yet.
    """
    return [part for each in servers if (part := _own_part(each)) is not None]


def database_away(answered_at: int, since: datetime) -> Component:
    """What a process says of the database, which cannot say it itself.

    ``answered_at`` is the version that it last said of itself. Whoever has it answer later, in
    whatever process, has a higher one.
    """
    return Component(DATABASE, "unavailable", DATABASE_UNREACHABLE, since, answered_at + 1)


def standing_of(part: Component) -> PartStanding:
    """What of a part is news when it changes: of the database, not that it was looked at again."""
    return part.component, part.status, None if part.component == DATABASE else part.version


def component_json(part: Component) -> dict[str, Any]:
    """What is answered of a part."""
    document: dict[str, Any] = {
        "component": part.component,
        "status": part.status,
        "version": part.version,
    }
    if part.reason is not None:
        document["reason"] = part.reason
    if part.occurred_at is not None:
        document["occurred_at"] = part.occurred_at
    return document


def _own_part(found: UserServer) -> Component | None:
    name, version = f"{_CONNECTION}{found.server.name}", found.standing_version
    if found.reason == NOT_ALLOWED:
        return None
    if found.failing_since is not None and found.state in _TRIED:
        reason = f"mcp_{found.failing_reason or _UNSAID}"
        return Component(name, "unavailable", reason, found.failing_since, version)
    if found.state == "available":
        return Component(name, "available", None, None, version)
    return None
