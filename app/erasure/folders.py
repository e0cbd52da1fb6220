"""People's folders on this host: what their tool servers have kept there."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from app.erasure.emptying import delete_tree
from app.tools.stdio.folders import owner_folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tenancy.principal import UserId

YOUNG_SECONDS = 600.0
"""Younger folders may be of somebody who came after the people were looked up."""
MARK = ".database"
"""The file that says whose folders these are."""
_PERSONS = re.compile(r"[0-9a-f]{32}")


async def delete_folder(root: Path, user_id: UserId) -> bool:
    """Delete all that a person's tool servers have kept here; False where there was nothing.

    Nothing of theirs may run any more: what writes meanwhile can make this fail.

    Raises:
        OSError: something of it cannot be deleted.
    """
    return await asyncio.to_thread(delete_tree, owner_folder(root, user_id))


class FoldersOfAnother(Exception):
    """The folder belongs to another database's service: its people are not known here."""


async def delete_strangers(root: Path, database: str, users: AsyncIterator[UserId]) -> int:
    """Delete people's folders that are none of these users'; return how many.

    ``users`` are all that the ``database`` knows. A folder is left behind where a host was away
    while somebody was erased. What is older than the mark that says whose the folders are, is left.

    Raises:
        FoldersOfAnother: they are another database's.
        OSError: something cannot be deleted.
    """
    left = await asyncio.to_thread(_old_folders, root, database)
    if not left:
        return 0
    async for user_id in users:
        left.discard(owner_folder(root, user_id))
    deleted, failed = 0, list[OSError]()
    for folder in sorted(left):
        try:
            deleted += await asyncio.to_thread(delete_tree, folder)
        except OSError as error:  # it must not keep the others
            failed.append(error)
    if failed:
        raise failed[0]
    return deleted


def _old_folders(root: Path, database: str) -> set[Path]:
    """What looks like people's folders, of this database's time, and is not young."""
    if not root.is_dir():
        return set()
    since, newest = _marked(root, database), time.time() - YOUNG_SECONDS
    found = set[Path]()
    for each in root.iterdir():
        with suppress(FileNotFoundError):  # another worker is at it
            status = each.lstat()
            # The first of these a program can set to whatever it likes.
            is_old = min(status.st_mtime, status.st_ctime) < newest
            if _PERSONS.fullmatch(each.name) and since <= status.st_mtime and is_old:
                found.add(each)
    return found


def _marked(root: Path, database: str) -> float:
    """Since when it is said that these are this database's folders: from now on, if it was not.

    Raises:
        FoldersOfAnother: they are another's.
    """
    mark, written = root / MARK, root / f"{MARK}.{uuid4().hex}"
    if not mark.exists():
        written.write_text(database)
        with suppress(FileExistsError):  # another worker was quicker
            mark.hardlink_to(written)
        written.unlink()
    if mark.read_text() != database:
        raise FoldersOfAnother
    return mark.stat().st_mtime
