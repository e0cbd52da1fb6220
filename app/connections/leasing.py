"""A connection with its user's credential, which is renewed once where its server refuses it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Protocol

from app.connections.errors import CredentialMissing
from app.tools.pool.failures import Reason, ToolServerUnavailable
from app.tools.servers import Credential, Scope

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from app.tools.mcp.access import Credentials
    from app.tools.pool.leased import ToolConnection
    from app.tools.servers import McpServer
    from tenancy.principal import Owner, UserId

    class Pool(Protocol):
        """What is needed of ``ToolPool``."""

        def lease(
            self, owner: UserId | None, server: McpServer, credential: Credential
        ) -> AbstractAsyncContextManager[ToolConnection]:
            """A connection that is open."""
            ...

    class LetsGo(Pool, Protocol):
        """The same, for whoever finds that a credential is over."""

        def let_go(self, owner: UserId | None = None, server: str | None = None) -> None:
            """Close a person's connections to a server, once they are not in use."""


_OVER = ("needs_key", "needs_authorization", "disconnected")


@asynccontextmanager
async def leased(
    pool: Pool, credentials: Credentials, owner: Owner, server: McpServer
) -> AsyncIterator[tuple[ToolConnection, Credential]]:
    """Lease a connection, and say with what.

    Raises:
        CredentialUnusable: there is nothing that the server takes.
        ToolServerUnavailable: there is no connection to be had.
        DatabaseUnavailable: Postgres cannot be reached.
    """
    if server.scope is Scope.SHARED:
        async with pool.lease(None, server, Credential()) as connection:
            yield connection, Credential()
        return
    for is_last in (False, True):
        credential = await credentials.current(owner, server)
        async with AsyncExitStack() as stack:
            opening = pool.lease(owner.user_id, server, credential)
            try:
                connection = await stack.enter_async_context(opening)
            except ToolServerUnavailable as error:
                if error.reason != Reason.NEEDS_AUTHORIZATION:
                    raise
                await credentials.refused(owner, server, credential)
                if is_last:
                    raise
                continue
            yield connection, credential
            return


class LettingGo:
    """Credentials, and where there is none any more, no connection either.

    Who revoked it has said so, but that is heard once: it may have been missed, or have come while
    a connection was being opened.
    """

    def __init__(self, credentials: Credentials, pool: LetsGo) -> None:
        self._credentials = credentials
        self._pool = pool

    async def current(self, owner: Owner, server: McpServer) -> Credential:
        """What the owner's connection proves itself with now."""
        try:
            return await self._credentials.current(owner, server)
        except CredentialMissing as error:
            if error.reason in _OVER:
                self._pool.let_go(owner.user_id, server.name)
            raise

    async def refused(self, owner: Owner, server: McpServer, credential: Credential) -> None:
        """Hear that a server does not take a credential."""
        await self._credentials.refused(owner, server, credential)
