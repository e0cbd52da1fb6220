"""The folders that tool servers work in: one for each user and server, nobody else's to enter."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenancy.principal import UserId

_SHARED = "shared"


class FolderUnusable(Exception):
    """Something else stands where a folder has to be."""


def folder_of(root: Path, owner: UserId | None, server: str) -> Path:
    """Where a user's server works; a shared one's with no owner. Says nothing of who it is."""
    return owner_folder(root, owner) / server


def owner_folder(root: Path, owner: UserId | None) -> Path:
    """Where all of a user's servers work; those that are everybody's with no owner."""
    if owner is None:
        return root / _SHARED
    return root / hashlib.blake2b(owner.bytes, digest_size=16, person=b"stoa-mcp").hexdigest()


def make_folder(root: Path, owner: UserId | None, server: str) -> Path:
    """The folder, there and closed to others.

    Raises:
        FolderUnusable: there is something else, a link for instance.
        OSError: it cannot be made.
    """
    folder = folder_of(root.absolute(), owner, server)
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    for each in (folder.parent, folder):
        each.mkdir(mode=0o700, exist_ok=True)
        found = each.lstat().st_mode
        if not stat.S_ISDIR(found):
            raise FolderUnusable
        if stat.S_IMODE(found) != 0o700:  # noqa: PLR2004 - its owner's alone
            each.chmod(0o700)
    return folder
