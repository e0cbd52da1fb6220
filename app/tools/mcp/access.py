"""What a run's calls need of the rooms around: a connection, and a credential to open it with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tenancy.errors import StoaError

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from app.tools.pool.leased import ToolConnection
    from app.tools.servers import Credential, McpServer
    from tenancy.principal import Owner, UserId


class CredentialUnusable(StoaError):
    """A server cannot be called for its user. ``reason`` is a stable code."""

    code = "credential_missing"
    message = "A tool server's credential is missing."

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason


class Connections(Protocol):
    """Where connections are leased."""

    def lease(
        self, owner: UserId | None, server: McpServer, credential: Credential
    ) -> AbstractAsyncContextManager[ToolConnection]:
        """A connection for one call; nobody's in particular where ``owner`` is None.

        Raises:
            ToolServerUnavailable: there is none to be had.
        """
        ...


class Credentials(Protocol):
    """Where credentials are opened."""

    async def current(self, owner: Owner, server: McpServer) -> Credential:
        """What the owner's connection proves itself with now.

        Raises:
            CredentialUnusable: there is none, or it may not be used any more.
        """
        ...

    async def refused(self, owner: Owner, server: McpServer, credential: Credential) -> None:
        """Hear that a server does not take a credential; ``current`` then gives another one.

        Raises:
            CredentialUnusable: there is no other.
        """
        ...
