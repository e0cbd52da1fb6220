"""What a run's calls need of the rooms around: a connection, and a credential to open it with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import mcp_types as types

from app.tools.servers import Credential, ListedTool, McpServer
from tenancy.principal import Owner, UserId

Progress = Callable[[float, float | None, str | None], Awaitable[None]]


class CredentialUnusable(Exception):
    """A server cannot be called for its user. ``reason`` is a stable code."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Connection(Protocol):
    """A connection that is this call's while it is leased."""

    @property
    def tools(self) -> tuple[ListedTool, ...]:
        """What the server offers just now."""
        ...

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        meta: Mapping[str, Any],
        seconds: float,
        progress: Progress | None = None,
    ) -> types.CallToolResult:
        """Call a tool.

        Raises:
            TimeoutError: it took too long; the server was told.
            ToolServerUnavailable: the connection was lost in the middle.
            Asked: the server wants to know something first.
        """
        ...


class Connections(Protocol):
    """Where connections are leased."""

    def lease(
        self, owner: UserId | None, server: McpServer, credential: Credential
    ) -> AbstractAsyncContextManager[Connection]:
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
