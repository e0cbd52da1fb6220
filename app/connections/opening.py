"""From the service's settings to what people's connections are kept with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.connections.oauth.client import PublicAddress
from tenancy.vault import Vault, WrappingKeys

if TYPE_CHECKING:
    from app.settings import Settings
    from tenancy.database.tenant import TenantDatabase


def open_vault(settings: Settings, database: TenantDatabase) -> Vault:
    """The vault under the keys of the settings; a closed one where there are none."""
    keys = settings.vault_keys
    return Vault(database, None if keys is None else WrappingKeys.parse(keys.get_secret_value()))


def public_address(settings: Settings) -> PublicAddress:
    """Where people reach the service, and authorizations come back to."""
    return PublicAddress(None if settings.public_url is None else str(settings.public_url))
