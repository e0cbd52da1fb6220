"""What can be wrong with a tool server, as a code that says nothing of its insides."""

from __future__ import annotations

from enum import StrEnum

from app.tools.servers import CredentialKind, McpServer, Unavailable

UNAUTHORIZED = 401
_FORBIDDEN = 403


class Reason(StrEnum):
    """Why a server's tools are missing."""

    UNREACHABLE = "unreachable"
    """It could not be started, or nothing answers at its address."""
    EXITED = "exited"
    """Its process ended by itself."""
    TIMEOUT = "timeout"
    REFUSED = "refused"
    """It wants nothing to do with this user's credential."""
    PROTOCOL = "protocol"
    """What it says is not MCP, or beyond bounds."""
    RESTING = "resting"
    """It failed again and again, and is left alone for a while."""
    FULL = "full"
    """No connection is free."""
    CLOSED = "closed"
    """The connection was ended on our side."""
    NEEDS_KEY = "needs_key"
    NEEDS_AUTHORIZATION = "needs_authorization"


class ToolServerUnavailable(Exception):
    """A server's tools cannot be used now."""

    def __init__(self, server: str, reason: Reason, *, is_unheard: bool = False) -> None:
        super().__init__(str(reason))
        self.unavailable = Unavailable(server, reason)
        self.is_unheard = is_unheard
        """Whether the call was not sent, or not let in: it has had no effect."""

    @property
    def reason(self) -> str:
        """The stable code."""
        return self.unavailable.reason


class NotReadable(Exception):
    """A server does not let that be read; what it says of it is not repeated."""


def reason_of_status(status: int, server: McpServer) -> Reason:
    """What an HTTP status above 399 means for a server's user."""
    if status == UNAUTHORIZED:
        match server.credential.kind:
            case CredentialKind.OAUTH:
                return Reason.NEEDS_AUTHORIZATION
            case CredentialKind.HEADER:
                return Reason.NEEDS_KEY
    return Reason.REFUSED if status in (UNAUTHORIZED, _FORBIDDEN) else Reason.UNREACHABLE
