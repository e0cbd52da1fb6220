"""A connection with its user's credential, which is renewed once where its server refuses it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Protocol

from app.tools.pool.failures import Reason, ToolServerUnavailable
from app.tools.servers import Credential, Scope

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from app.connections.credentials import Credentials
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


@asynccontextmanager
async def leased(
    pool: Pool, credentials: Credentials, owner: Owner, server: McpServer
) -> AsyncIterator[tuple[ToolConnection, Credential]]:
    """Lease a connection, and say with what.

    Raises:
        CredentialMissing: there is nothing that the server takes.
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
