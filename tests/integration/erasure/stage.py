"""A deployment whose database can be put back to what it was, with the processes that see to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from uuid import UUID, uuid4

from app.databases import dispatch_settings, service_settings
from app.erasure.hashing import identity_hashes
from app.erasure.views import ErasureView, erasure_view
from app.settings import Settings
from tenancy.database.tenant import TenantDatabase
from tenancy.erasure.records import ErasureDatabase
from tenancy.identity.directory import UserDirectory
from tenancy.principal import Principal, UserId
from tests.support.postgres import PostgresServer, Role
from tests.support.service import running_worker
from tests.support.tenancy import identity

DONE_SECONDS = 30
_DSNS: Final[dict[str, Role]] = {
    "database_url": "service",
    "dispatch_database_url": "dispatch",
    "maintenance_database_url": "maintenance",
    "owner_database_url": "owner",
}


@dataclass
class Backups:
    """Databases of one server: the one in use, and copies of what it was."""

    server: PostgresServer
    common: dict[str, object]
    _made: list[str] = field(default_factory=list)

    async def take(self, name: str) -> str:
        """A copy of a database that nobody is connected to."""
        copy = f"stoa_backup_{uuid4().hex[:12]}"
        await self.server.copy_database(name, copy)
        self._made.append(copy)
        return copy

    async def drop(self) -> None:
        for name in self._made:
            await self.server.drop_database(name)

    def of(self, name: str, **changes: object) -> Settings:
        """The settings of a service on one of the databases."""
        dsns = {setting: self.server.dsn(role, name) for setting, role in _DSNS.items()}
        return Settings.model_validate({**self.common, **dsns, **changes})


async def signed_in(settings: Settings, subject: str) -> Principal:
    """Somebody as a web process knows them, with nobody connected afterwards."""
    database = TenantDatabase(service_settings(settings))
    try:
        directory = UserDirectory(database, identity_hashes(settings))
        return await directory.principal(identity(subject, settings.required("identity_issuer")))
    finally:
        await database.close()


@asynccontextmanager
async def erasures_of(settings: Settings) -> AsyncIterator[ErasureDatabase]:
    """The erasures of a database."""
    erasures = ErasureDatabase(dispatch_settings(settings))
    try:
        yield erasures
    finally:
        await erasures.close()


async def erased(settings: Settings, user_id: UserId) -> ErasureView:
    """What a worker has made of a person's wish to leave."""
    async with erasures_of(settings) as erasures:
        erasure_id = await erasures.begin(user_id, "person")
        assert erasure_id is not None
    return await led_to_its_end(settings, erasure_id)


async def led_to_its_end(settings: Settings, erasure_id: UUID) -> ErasureView:
    """An erasure that was begun, or is when the worker starts, once the worker is done with it."""
    async with running_worker(settings), erasures_of(settings) as erasures:
        async with asyncio.timeout(DONE_SECONDS):
            while True:
                found = await erasures.find(erasure_id)
                if found is not None and found.step == "done":
                    return erasure_view(found)
                await asyncio.sleep(0.05)


def folder_of(settings: Settings) -> Path:
    assert settings.tombstone_folder is not None
    return settings.tombstone_folder
