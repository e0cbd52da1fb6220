"""What can be wrong with a connection, as whoever asks is told."""

from __future__ import annotations

from typing import Literal

from app.tools.mcp.access import CredentialUnusable
from tenancy.errors import Conflict, Forbidden, InvalidInput, NotFound

MissingReason = Literal["needs_key", "needs_authorization", "disconnected", "unreachable", "vault"]


class ConnectionNotFound(NotFound):
    """No such server for this user."""

    code = "connection_not_found"
    message = "There is no such tool server."


class ConnectionExists(Conflict):
    """There is a server of this name."""

    code = "connection_exists"
    message = "There is a tool server of this name already. Choose another one."


class TooManyOwnServers(Conflict):
    """The user has added as many servers as one may."""

    code = "too_many_own_servers"
    message = "There are as many tool servers of your own as one may have. Remove one."


class OwnServersNotAllowed(Forbidden):
    """People may not add servers here."""

    code = "own_servers_not_allowed"
    message = "Tool servers of one's own may not be added here."


class NotYourServer(Conflict):
    """The operator's servers cannot be removed."""

    code = "not_your_server"
    message = "This tool server is the operator's: it can be disconnected, but not removed."


class NoKeyWanted(Conflict):
    """The server does not take a key."""

    code = "no_key_wanted"
    message = "This tool server takes no key."


class UnacceptableServer(InvalidInput):
    """What was said of a server of one's own cannot be accepted."""

    code = "unacceptable_server"


class CredentialMissing(CredentialUnusable):
    """A server cannot be called for this user now, since it would not know for whom."""

    def __init__(self, server: str, reason: MissingReason) -> None:
        super().__init__(reason)
        self.server = server
        """Its name. ``reason`` is ``unreachable`` where an authorization is over and nobody can be
        reached to renew it, ``vault`` where the operator has to see to the keys."""
