"""Lets go of connections whose credential is not to be used any more, whoever revoked it where."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from tenancy.principal import UserId

if TYPE_CHECKING:
    from typing import Protocol

    from app.connections.known import KnownConnections

    class Forgetting(Protocol):
        """What is needed of ``ToolPool``."""

        def forget(self, owner: UserId, server: str) -> None:
            """Close a user's connections to a server."""
            ...

        def let_go(self) -> None:
            """Close every user's connections once they are not in use."""
            ...


class RevokedConnections:
    """Closes what is revoked as it is heard of.

    One that is missed is used no more all the same: each call asks for the credential before.
    """

    def __init__(self, known: KnownConnections, pool: Forgetting) -> None:
        self._known = known
        self._pool = pool

    def hear(self, payload: str | None) -> None:
        """Connections of these keys were revoked; with None, anybody's may have been."""
        if payload is None:
            self._pool.let_go()
        for key in payload.split(",") if payload else ():
            user, _, connection = key.partition("/")
            user_id = UserId(UUID(user))
            for server in self._known.servers_of(user_id, UUID(connection)):
                self._pool.forget(user_id, server)
