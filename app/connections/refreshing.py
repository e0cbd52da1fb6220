"""Renewing an authorization: by one at a time, of all processes; the others wait for what it gets.

Refresh tokens are often good for one use only, so two that use the same one would lose both. The
right to use it is a lease in the connection's row, by the database's clock.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

import structlog
from tenacity import (
    AsyncRetrying,
    RetryError,
    retry_if_result,
    stop_after_delay,
    wait_random_exponential,
)

from app.connections.errors import CredentialMissing
from app.connections.known import connection_key
from app.connections.oauth.errors import AuthorizationLost, AuthorizationServerUnavailable
from app.connections.oauth.tokens import Tokens
from app.logging import facts_of
from tenancy.database.retry import while_database_is_away
from tenancy.errors import StoaError, UserUnavailable

if TYPE_CHECKING:
    from app.connections.keeping import CredentialKeeper
    from app.connections.rows import ConnectionRows, StoredCredential
    from app.tools.servers import McpServer
    from tenancy.database.signals import Announcer
    from tenancy.principal import Owner

log = structlog.get_logger(__name__)

BEFORE_SECONDS = 30.0
"""How long before its end a token is renewed: a call that begins with it should end with it."""
REQUEST_SECONDS = 20.0
LEASE_SECONDS = 40.0
"""Longer than the request and the write together, or a second one would use the same token."""


class Authorizing(Protocol):
    """What is needed of ``OAuth``."""

    async def refresh(self, server: McpServer, tokens: Tokens) -> Tokens:
        """Renew tokens. Raises AuthorizationLost, AuthorizationServerUnavailable."""
        ...

    async def revoke(self, server: McpServer, tokens: Tokens) -> bool:
        """Give tokens back, as well as it goes; whether they were taken."""
        ...


def _patience() -> AsyncRetrying:
    """Asks again while somebody else is at it, who may die in it."""
    return AsyncRetrying(
        retry=retry_if_result(lambda found: found is None),
        wait=wait_random_exponential(0.05, max=0.5),
        stop=stop_after_delay(LEASE_SECONDS + REQUEST_SECONDS),
    )


class Refresher:
    """Renews tokens that are about to end. A renewal that has begun is finished, whoever waits."""

    def __init__(
        self,
        rows: ConnectionRows,
        keeper: CredentialKeeper,
        oauth: Authorizing,
        announcer: Announcer,
    ) -> None:
        self._rows = rows
        self._keeper = keeper
        self._oauth = oauth
        self._announcer = announcer
        self._under_way: set[asyncio.Task[bool | None]] = set()

    def is_due(self, stored: StoredCredential, tokens: Tokens) -> bool:
        """Whether tokens should be renewed before they are used."""
        if stored.expires_in is None:
            return False
        return stored.expires_in < (BEFORE_SECONDS if tokens.refresh_token is not None else 0)

    async def refreshed(
        self, owner: Owner, server: McpServer, stored: StoredCredential, tokens: Tokens
    ) -> bool:
        """Have tokens renewed, by whomever; False where the old ones have to do, and still do.

        Raises:
            CredentialMissing: they are over, and there are no new ones.
        """
        try:
            found: bool | None = await _patience()(self._attempt, owner, server, stored, tokens)
        except RetryError:
            found = None
        return self._unless_over(server, stored) if found is None else found

    async def give_up(self, owner: Owner, stored: StoredCredential) -> bool:
        """Forget tokens that are of no use; False where there are others, or none, by now."""
        about = (owner, stored.connection_id, stored.version)
        if not await self._rows.end_refresh(*about, lost=True):
            return False
        key = connection_key(owner.user_id, stored.connection_id)
        self._announcer.connection_revoked(key)
        self._announcer.connection_changed(key)
        return True

    async def aclose(self) -> None:
        """Wait for what is under way."""
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _attempt(
        self, owner: Owner, server: McpServer, stored: StoredCredential, tokens: Tokens
    ) -> bool | None:
        """Renew them, if that is ours to do; None while it is somebody else's."""
        work = self._refresh_if_ours(owner, server, stored, tokens)
        task = asyncio.create_task(work, name="refresh")
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await asyncio.shield(task)

    async def _refresh_if_ours(
        self, owner: Owner, server: McpServer, stored: StoredCredential, tokens: Tokens
    ) -> bool | None:
        outcome = await self._rows.begin_refresh(
            owner, stored.connection_id, stored.version, LEASE_SECONDS
        )
        match outcome:
            case "yours":
                return await self._refresh(owner, server, stored, tokens)
            case "changed":
                return True
            case "others":
                return None

    async def _refresh(
        self, owner: Owner, server: McpServer, stored: StoredCredential, tokens: Tokens
    ) -> bool:
        key = connection_key(owner.user_id, stored.connection_id)
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                new = await self._oauth.refresh(server, tokens)
        except AuthorizationLost:
            if not await self.give_up(owner, stored):
                return True  # the person has disconnected, say, which took them back
            raise CredentialMissing(server.name, "needs_authorization") from None
        except (AuthorizationServerUnavailable, TimeoutError) as error:
            log.warning("an authorization could not be renewed", error=type(error).__name__)
            await self._rows.end_refresh(owner, stored.connection_id, stored.version, lost=False)
            return self._unless_over(server, stored)
        try:
            is_kept = await while_database_is_away(self._keep, owner, server, stored, new)
        except UserUnavailable:  # nobody else would ever know of them
            await self._oauth.revoke(server, new)
            raise
        if is_kept:
            self._announcer.connection_changed(key)
        return True

    async def _keep(
        self, owner: Owner, server: McpServer, stored: StoredCredential, new: Tokens
    ) -> bool:
        kept = await self._keeper.keep(
            owner,
            stored.connection_id,
            "oauth",
            new.plain(),
            expires_in=new.expires_in,
            expected_version=stored.version,
            refreshed=True,
        )
        if not kept and not await self._is_kept(owner, server, new):
            await self._oauth.revoke(server, new)  # the person has disconnected meanwhile
        return kept

    async def _is_kept(self, owner: Owner, server: McpServer, new: Tokens) -> bool:
        """Whether these are there already: the answer to an earlier attempt may have been lost."""
        found = await self._rows.credential(owner, server.name)
        try:
            return found is not None and self._keeper.opened(owner, found) == new.plain()
        except StoaError as error:
            log.warning("a credential does not open", **facts_of(error))
            return False

    def _unless_over(self, server: McpServer, stored: StoredCredential) -> bool:
        """False: the old ones still do."""
        if stored.expires_in is None or stored.expires_in > 0:
            return False
        raise CredentialMissing(server.name, "unreachable")
