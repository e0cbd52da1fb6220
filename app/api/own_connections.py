"""A person's connections, as their feed tells of them: each when it has changed."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from app.api.connection_views import connection_json
from app.runs.wire import to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.connections.standing import UserConnections, UserServer
    from tenancy.principal import Owner


class OwnConnections:
    """One reader's view of their own connections."""

    def __init__(self, connections: UserConnections, owner: Owner) -> None:
        self._connections = connections
        self._owner = owner
        self._told: dict[str, bytes] = {}
        self.found: Sequence[UserServer] = ()
        """As they were found last."""

    async def news(self) -> list[bytes]:
        """A frame for each that is otherwise than it was the last time, or gone."""
        self.found = await self._connections.all(self._owner)
        documents = {each.server.name: to_json(connection_json(each)) for each in self.found}
        known, self._told = self._told, {name: _digest(each) for name, each in documents.items()}
        changed = [each for name, each in documents.items() if known.get(name) != self._told[name]]
        gone = [to_json({"server": name, "removed": True}) for name in known.keys() - documents]
        return [b"event: connection\ndata: %b\n\n" % each for each in (*changed, *gone)]


def _digest(document: bytes) -> bytes:
    return hashlib.blake2b(document, digest_size=16).digest()
