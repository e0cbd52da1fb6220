"""Which connections this process has used of late, by the ids that signals speak of."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from tenancy.principal import UserId

MOST_KNOWN = 10_000
"""People; of each, their last ones."""
MOST_OF_EACH = 200


def connection_key(user_id: UserId, connection_id: UUID) -> str:
    """The opaque key under which a connection's changes are announced."""
    return f"{user_id}/{connection_id}"


class KnownConnections:
    """Knows the servers' names, which are not told to everybody who listens."""

    def __init__(self) -> None:
        self._ids: OrderedDict[UUID, OrderedDict[str, UUID | None]] = OrderedDict()

    def remember(self, user_id: UserId, connection_id: UUID | None, server: str) -> None:
        """Remember a connection that is about to be used; it has no id before it is stored."""
        known = self._ids.setdefault(user_id, OrderedDict())
        known[server] = connection_id
        known.move_to_end(server)
        if len(known) > MOST_OF_EACH:
            known.popitem(last=False)
        self._ids.move_to_end(user_id)
        while len(self._ids) > MOST_KNOWN:
            self._ids.popitem(last=False)

    def forget(self, user_id: UserId) -> None:
        """Know nothing of a person's connections any more."""
        self._ids.pop(user_id, None)

    def servers_of(self, user_id: UUID, connection_id: UUID) -> list[str]:
        """The names of the servers that are used here and that this id may be of."""
        known = self._ids.get(user_id, OrderedDict())
        return [server for server, id_ in known.items() if id_ in (connection_id, None)]
