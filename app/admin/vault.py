"""``stoa admin vault``: which keys are in use, and replacing them. Shows ids and counts only."""

from __future__ import annotations

from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from app.connections.opening import open_vault
from app.databases import maintenance_settings, service_settings
from tenancy.database.roles import assert_role
from tenancy.database.tenant import TenantDatabase
from tenancy.errors import StoaError, UserUnavailable
from tenancy.vault import WrappingKeyMissing, WrappingKeys
from tenancy.vault.overview import VaultOverview
from tenancy.vault.rotation import rekey

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from app.settings import Settings
    from tenancy.vault.overview import KeyUse


class VaultKeyView(BaseModel):
    """A key-encryption key: one of the settings, or one that something is wrapped under."""

    key_id: str
    configured: bool = Field(description="Whether STOA_VAULT_KEYS has it.")
    wraps: bool = Field(description="Whether new data keys are wrapped under it.")
    users: int
    data_keys: int


class VaultRotation(BaseModel):
    """What a rotation did."""

    users: int = Field(0, description="Whose keys were looked at.")
    rewrapped: int = Field(0, description="Data keys put under the first key.")
    new_data_keys: int = 0
    resealed: int = Field(0, description="Credentials put under a new data key.")
    left: int = Field(0, description="Older data keys that something under way still needs.")
    failed: int = Field(0, description="Users for whom it could not be done.")
    why: dict[str, int] = Field(default_factory=dict, description="Their number by reason.")


async def vault_keys(settings: Settings) -> list[VaultKeyView]:
    """Every key that there is or should be, with what is wrapped under it.

    Raises:
        WrongRole: the maintenance role may do more or less than it must.
        DatabaseUnavailable: Postgres cannot be reached.
    """
    async with _overview(settings) as overview:
        return _views(await overview.in_use(), _configured(settings))


async def rotate(settings: Settings, *, older_than_seconds: float | None) -> VaultRotation:
    """Put everybody's data keys under the first key; replace those that are older than so much.

    Raises:
        VaultNotConfigured: the settings have no keys.
        WrongRole: a role may do more or less than it must.
        DatabaseUnavailable: Postgres cannot be reached.
    """
    service = service_settings(settings)
    await assert_role(service, reads_content=True)
    database = TenantDatabase(service)
    vault = open_vault(settings, database)
    done: Counter[str] = Counter()
    why: Counter[str] = Counter()
    try:
        newest = vault.keys.newest
        async with _overview(settings) as overview:
            async for owner in overview.to_rekey(newest, older_than_seconds):
                try:
                    one = await rekey(database, vault, owner, older_than_seconds=older_than_seconds)
                except UserUnavailable:
                    continue  # they are being erased by now
                except StoaError as error:
                    why[_reason(error)] += 1
                    done["failed"] += 1
                else:
                    done.update(
                        rewrapped=one.rewrapped,
                        new_data_keys=one.new_data_keys,
                        resealed=one.resealed,
                        left=one.left,
                    )
                done["users"] += 1
    finally:
        await database.close()
    return VaultRotation(**done, why=dict(why))


def _views(in_use: Iterable[KeyUse], configured: tuple[str, ...]) -> list[VaultKeyView]:
    used = {each.key_id: each for each in in_use}
    ids = [*configured, *(key_id for key_id in used if key_id not in configured)]
    return [
        VaultKeyView(
            key_id=key_id,
            configured=key_id in configured,
            wraps=key_id == next(iter(configured), None),
            users=used[key_id].users if key_id in used else 0,
            data_keys=used[key_id].data_keys if key_id in used else 0,
        )
        for key_id in ids
    ]


def _configured(settings: Settings) -> tuple[str, ...]:
    if settings.vault_keys is None:
        return ()
    return WrappingKeys.parse(settings.vault_keys.get_secret_value()).ids


def _reason(error: StoaError) -> str:
    return f"{error.code} {error.key_id}" if isinstance(error, WrappingKeyMissing) else error.code


@asynccontextmanager
async def _overview(settings: Settings) -> AsyncIterator[VaultOverview]:
    maintenance = maintenance_settings(settings)
    await assert_role(maintenance, reads_content=False)
    overview = VaultOverview(maintenance)
    try:
        yield overview
    finally:
        await overview.close()
