"""After a restore: whoever was erased since the backup is back, and is erased again.

The tombstones' files say of whom: by a hash, with which every user's is compared. It is done before
anything is served; once an erasure has begun, nothing of its person is.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

import structlog

from app.databases import dispatch_settings, maintenance_settings
from app.erasure.errors import TombstoneUnusable
from app.erasure.hashing import PersonHashes
from app.erasure.signing import signing_keys
from app.erasure.tombstone_files import Tombstone, TombstoneFolder
from app.erasure.tombstones import tombstone_folder
from tenancy.database.upkeep import UpkeepDatabase
from tenancy.erasure.records import ErasureDatabase

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from app.settings import Settings

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Restored:
    """What was found, and done about it."""

    tombstones: int = 0
    unknown: int = 0
    """Of erasures that the database does not know: it was restored from a backup of before."""
    begun: tuple[UUID, ...] = ()
    """Erasures that were begun again. Of the rest of the unknown nobody is there."""
    missing: int = 0
    """Erasures that the database knows, and that have no file in the settings' folder."""


def warn_of_missing(settings: Settings) -> None:
    """Say what of leaving the settings leave out."""
    if settings.signing_keys is None:
        log.warning("nobody can be erased: STOA_SIGNING_KEYS is not set")
    elif settings.tombstone_folder is None:
        log.warning("restored backups bring back who was erased: STOA_TOMBSTONE_FOLDER is not set")


async def apply_tombstones(settings: Settings, path: Path | None = None) -> Restored:
    """Begin every erasure again that the folder knows and the database does not.

    As often as you like, and in any number of processes at once.

    Args:
        settings: how to reach the database, the keys, and the folder.
        path: another folder than the settings'.

    Raises:
        TombstoneUnusable: a file cannot be read, or its key is not among the settings'.
        SettingsError: the maintenance role is needed to look for people, and missing.
        DatabaseUnavailable: Postgres cannot be reached.
    """
    folder = tombstone_folder(settings) if path is None else TombstoneFolder(path)
    if folder is None:
        return Restored()
    erasures = ErasureDatabase(dispatch_settings(settings))
    try:
        # Asked first: a file is there before its erasure is said to have one.
        recorded = await erasures.recorded() if path is None else set[UUID]()
        tombstones = await asyncio.to_thread(folder.read)
        missing = len(recorded.difference(each.erasure_id for each in tombstones))
        if missing:
            _warn_of_folder(missing, len(recorded))
        unknown = await _unknown(erasures, tombstones) if tombstones else ()
        begun = await _begin_again(settings, erasures, unknown) if unknown else ()
    finally:
        await erasures.close()
    if begun:  # of the others nobody is in the backup, which is told nobody at every start
        log.warning(
            "erasures that the database does not know were begun again",
            unknown=len(unknown),
            begun=len(begun),
        )
    return Restored(len(tombstones), len(unknown), begun, missing)


def _warn_of_folder(missing: int, recorded: int) -> None:
    """It is another one, or not all is in it any more: after a restore people would be back."""
    log.warning(
        "tombstones' files are missing: look whether STOA_TOMBSTONE_FOLDER is the right folder",
        missing=missing,
        recorded=recorded,
    )


async def _unknown(
    erasures: ErasureDatabase, tombstones: Sequence[Tombstone]
) -> Sequence[Tombstone]:
    """Those whose erasure the database does not know, and whose time is not over."""
    ids: set[UUID] = set(await erasures.unknown([each.erasure_id for each in tombstones]))
    now = await erasures.now() if ids else None
    return [
        each
        for each in tombstones
        if each.erasure_id in ids and now is not None and each.expires_at > now
    ]


async def _begin_again(
    settings: Settings, erasures: ErasureDatabase, unknown: Sequence[Tombstone]
) -> tuple[UUID, ...]:
    hashes = _hashes(settings, unknown)
    wanted: defaultdict[str, dict[bytes, UUID]] = defaultdict(dict)
    for each in unknown:
        wanted[each.key_id][each.user_hash] = each.erasure_id
    upkeep = UpkeepDatabase(maintenance_settings(settings))
    begun: list[UUID] = []
    try:
        await upkeep.assert_role()
        async for user_id in upkeep.every_user():
            for key_id, ids in wanted.items():
                erasure_id = ids.get(hashes.user_hash(user_id, key_id))
                if erasure_id is not None and await erasures.begin(user_id, "restore", erasure_id):
                    begun.append(erasure_id)
    finally:
        await upkeep.close()
    return tuple(begun)


def _hashes(settings: Settings, unknown: Sequence[Tombstone]) -> PersonHashes:
    """By which people are compared.

    Raises:
        TombstoneUnusable: a key is missing. To go on without it would bring somebody back.
    """
    keys = signing_keys(settings)
    hashes = None if keys is None else PersonHashes(keys)
    for each in unknown:
        if hashes is None or not hashes.has(each.key_id):
            raise TombstoneUnusable(
                f"The tombstone {each.erasure_id}.json was made with the key {each.key_id}, which"
                " STOA_SIGNING_KEYS does not have, and the database does not know its erasure."
                " Put the key back: somebody who was erased would come back without it."
            )
    assert hashes is not None  # noqa: S101 - there is at least one that is unknown
    return hashes
