"""Erasures as workers lead them, in so far as the database has a part in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

from tenancy.database.tenant import TenantDatabase
from tenancy.database.upkeep import UpkeepDatabase
from tenancy.erasure.own_rows import OwnRows
from tenancy.erasure.records import ErasureDatabase, ErasureJob
from tenancy.principal import Owner
from tests.support.tenancy import TestDatabase


@dataclass(frozen=True)
class Leaving:
    """What an erasure is done with."""

    erasures: ErasureDatabase
    rows: OwnRows
    upkeep: UpkeepDatabase

    async def begin(self, person: Owner) -> ErasureJob:
        """Begin to erase somebody, and take it on."""
        erasure_id = await self.erasures.begin(person.user_id, "person")
        job = await self.erasures.claim(60)
        assert job is not None
        assert job.erasure_id == erasure_id
        await self.erasures.await_writers(person.user_id)
        return job

    async def delete(self, person: Owner, most: int = 1000) -> None:
        """Delete everything of somebody who is being erased."""
        is_gone = False
        while not is_gone:
            while await self.rows.delete(person, most):
                pass
            is_gone = await self.rows.delete_user(person)

    async def erase(self, person: Owner, most: int = 1000) -> UUID:
        """Erase somebody whom no worker holds anything of."""
        job = await self.begin(person)
        await self.rows.destroy_keys(person)
        await self.erasures.end_runs(person.user_id)
        await self.delete(person, most)
        remaining = await self.upkeep.count_rows(person.user_id)
        assert await self.erasures.advance(job, "sign", remaining=remaining)
        assert await self.erasures.advance(job, "done", receipt="signed")
        return job.erasure_id


@asynccontextmanager
async def leaving_of(database: TestDatabase, tenants: TenantDatabase) -> AsyncIterator[Leaving]:
    """What erasures are done with, of one database."""
    erasures = ErasureDatabase(database.settings("dispatch"))
    upkeep = UpkeepDatabase(database.settings("maintenance"))
    try:
        yield Leaving(erasures, OwnRows(tenants), upkeep)
    finally:
        await erasures.close()
        await upkeep.close()
