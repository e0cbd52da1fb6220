"""How the parts of the service stand for one person: those of all, and their own connections."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from app.runs.wire import to_json
from app.runtime.parts import component_json, own_parts, standing_of
from tenancy.database.engine import DatabaseUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from app.api.services import Services
    from app.connections.standing import UserServer
    from app.runtime.parts import PartStanding
    from app.runtime.watch import RuntimeWatch
    from tenancy.principal import Principal
    from tenancy.scheduler.components import Component


async def own_runtime(services: Services, reader: Principal | None) -> dict[str, Any]:
    """What ``/runtime`` answers; of connections nothing while the database is away."""
    own: list[Component] = []
    if reader is not None:
        with suppress(DatabaseUnavailable):
            own = own_parts(await services.connections.all(reader))
    return _document((*services.runtime.parts, *own))


class OwnRuntime:
    """One reader's view of it: all parts, at once and whenever one stands otherwise."""

    def __init__(self, watch: RuntimeWatch) -> None:
        self._watch = watch
        self._told: tuple[PartStanding, ...] | None = None

    def news(self, servers: Iterable[UserServer]) -> bytes:
        """A frame with all parts, where one stands otherwise than was told; else nothing."""
        parts = (*self._watch.parts, *own_parts(servers))
        standing = tuple(standing_of(part) for part in parts)
        if standing == self._told:
            return b""
        self._told = standing
        return b"event: runtime\ndata: %b\n\n" % to_json(_document(parts))


def _document(parts: Iterable[Component]) -> dict[str, Any]:
    return {"components": [component_json(part) for part in parts]}
