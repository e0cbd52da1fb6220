"""What stays of a person for a while: keyed hashes, in the database and in a folder beside it.

By those in the database somebody who comes back is known to have spent what they spent. By files
an erasure is done again after the database was restored from a backup of before.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.erasure.hashing import PersonHashes
from app.erasure.signing import required_keys
from app.erasure.tombstone_files import Tombstone, TombstoneFolder
from tenancy.erasure.identities import identities_of

if TYPE_CHECKING:
    from app.settings import Settings
    from tenancy.database.tenant import TenantDatabase
    from tenancy.erasure.records import ErasureDatabase, ErasureJob
    from tenancy.principal import UserId


@dataclass(frozen=True, slots=True)
class _Person:
    """Somebody who leaves."""

    user_id: UserId


class Tombstones:
    """Sets tombstones, before anything of a person is deleted."""

    def __init__(
        self, settings: Settings, tenants: TenantDatabase, erasures: ErasureDatabase
    ) -> None:
        self._hashes = PersonHashes(required_keys(settings))
        self._seconds = settings.tombstone_seconds
        self._folder = tombstone_folder(settings)
        self._tenants = tenants
        self._erasures = erasures

    async def record(self, job: ErasureJob) -> None:
        """Set the tombstone of an erasure. As often as you like.

        Raises:
            TombstoneNotWritten: its file cannot be written.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        assert job.user_id is not None  # noqa: S101 - this step comes before the last row goes
        identities = await identities_of(self._tenants, _Person(job.user_id))
        user_hash = self._hashes.user_hash(job.user_id)
        expires_at = await self._erasures.record_tombstones(
            job.erasure_id,
            user_hash,
            [self._hashes.identity_hash(identity) for identity in identities],
            self._hashes.newest,
            self._seconds,
        )
        if self._folder is not None:
            tombstone = Tombstone(job.erasure_id, self._hashes.newest, user_hash, expires_at)
            await asyncio.to_thread(self._folder.write, tombstone)


def tombstone_folder(settings: Settings) -> TombstoneFolder | None:
    """The folder of the settings; None where there is none."""
    return None if settings.tombstone_folder is None else TombstoneFolder(settings.tombstone_folder)
