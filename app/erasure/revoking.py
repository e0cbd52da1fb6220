"""Giving back, at their issuers, the tokens of somebody who leaves.

Before the keys go that they are sealed under: without those nobody could.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import structlog

from app.connections.keeping import CredentialKeeper
from app.connections.oauth.oauth import OAuth
from app.connections.oauth.tokens import Tokens
from app.connections.opening import open_vault, public_address
from app.connections.standing import UserConnections
from app.logging import facts_of
from app.tools.approval.ruling import Ask
from app.tools.catalogue import Catalogue
from tenancy.database.engine import DatabaseUnavailable
from tenancy.errors import StoaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.connections.rows import ConnectionRow
    from app.settings import Settings
    from tenancy.database.signals import Announcer
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner

log = structlog.get_logger(__name__)

TRIES = 3
PAUSE_SECONDS = 1.0
"""Before what failed is tried again."""
EACH_SECONDS = 10.0
"""How long one try may take, whoever does not answer."""


@dataclass(frozen=True, slots=True)
class Revoked:
    """What became of a person's authorizations."""

    revoked: int
    not_revoked: int
    """Whose issuer did not answer, takes none back, or is not known any more."""


class TokenRevocation:
    """Gives back all that a person's authorizations at tool servers have given."""

    def __init__(
        self, connections: UserConnections, keeper: CredentialKeeper, oauth: OAuth
    ) -> None:
        self._connections = connections
        self._keeper = keeper
        self._oauth = oauth

    @classmethod
    def of(cls, settings: Settings, database: TenantDatabase, announcer: Announcer) -> Self:
        """As the operator has set it up.

        Raises:
            SettingsError: the catalogue or the keys cannot be used.
        """
        servers = Catalogue.load(settings.mcp_config, Ask(settings.approval_default)).servers
        connections = UserConnections(
            database, servers, announcer, own_allowed=settings.mcp_own_servers
        )
        vault = open_vault(settings, database)
        keeper = CredentialKeeper(connections.rows, vault)
        return cls(connections, keeper, OAuth(public_address(settings)))

    async def revoke_all(self, owner: Owner) -> Revoked:
        """Give everything back, all at once, what fails up to three times. As often as you like.

        Raises:
            DatabaseUnavailable: Postgres cannot be reached.
        """
        rows = await self._connections.rows.all(owner)
        authorized = [row for row in rows if row.credential_kind == "oauth"]
        left: Sequence[ConnectionRow] = authorized
        for number in range(TRIES):
            if left and number:
                await asyncio.sleep(PAUSE_SECONDS)
            given_back = await asyncio.gather(*(self._revoke(owner, row) for row in left))
            left = [row for row, done in zip(left, given_back, strict=True) if not done]
        return Revoked(len(authorized) - len(left), len(left))

    async def _revoke(self, owner: Owner, row: ConnectionRow) -> bool:
        """Give one authorization back; whether its issuer has taken it.

        Whatever else is wrong with it is no reason to keep the rest of the person.
        """
        try:
            return await self._give_back(owner, row)
        except DatabaseUnavailable:
            raise
        except TimeoutError:
            pass
        except StoaError as error:
            log.warning("tokens cannot be given back", **facts_of(error))
        except Exception as error:  # noqa: BLE001 - of a stranger's answer, or of what was stored
            log.warning("tokens cannot be given back", error=type(error).__name__)
        return False

    async def _give_back(self, owner: Owner, row: ConnectionRow) -> bool:
        known = self._connections.of_row(row)
        stored = await self._connections.rows.credential(owner, row.server)
        plain = None if stored is None else self._keeper.opened(owner, stored)
        if known is None or plain is None:
            return False
        async with asyncio.timeout(EACH_SECONDS):
            return await self._oauth.revoke(known.server, Tokens.read(plain))
