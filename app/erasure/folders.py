"""People's folders on this host: what their tool servers have kept there."""

from __future__ import annotations

import asyncio
import re
import shutil
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

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
    return await asyncio.to_thread(_delete, owner_folder(root, user_id))


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
    return sum([await asyncio.to_thread(_delete, folder) for folder in sorted(left)])


def _old_folders(root: Path, database: str) -> set[Path]:
    """What looks like people's folders, of this database's time, and is not young."""
    if not root.is_dir():
        return set()
    since, newest = _marked(root, database), time.time() - YOUNG_SECONDS
    return {
        each
        for each in root.iterdir()
        if _PERSONS.fullmatch(each.name) and since <= each.lstat().st_mtime < newest
    }


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


def _delete(folder: Path) -> bool:
    """Delete a folder, following no link, whatever a tool server has made of its permissions.

    Several workers of a host may be at it: True for the one that has deleted it.
    """
    with suppress(FileNotFoundError):
        if not stat.S_ISDIR(folder.lstat().st_mode):
            folder.unlink()
            return True
        _open_all(folder)
        for each in list(folder.iterdir()):
            if each.is_dir() and not each.is_symlink():
                shutil.rmtree(each, onerror=_unless_it_is_gone)
            else:
                each.unlink(missing_ok=True)
        folder.rmdir()
        return True
    return False


def _open_all(folder: Path) -> None:
    """Let us into every folder within: its owner may have shut some."""
    shut = [folder]
    while shut:
        each = shut.pop()
        with suppress(FileNotFoundError):
            each.chmod(0o700)
            shut += [inner for inner in each.iterdir() if inner.is_dir() and not inner.is_symlink()]


def _unless_it_is_gone(
    _function: object, _path: str, error: tuple[type[BaseException], BaseException, object]
) -> None:
    """Hear what ``shutil.rmtree`` cannot do: what another has deleted needs no deleting."""
    if not isinstance(error[1], FileNotFoundError):
        raise error[1]
