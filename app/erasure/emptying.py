"""Deleting a folder, whatever a program has made of it: shut, full, or deeper than a path goes.

What is deep is moved up before it is deleted, so that nothing is ever more than one level below
what is open: no path is too long for it, no stack too short, and few descriptors are enough. No
link is followed, also where something becomes one meanwhile.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE_SECONDS = 60.0
"""After that, whoever asked looks again later: what writes all the time must not hold them up."""
_NAMES_AT_ONCE = 1000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def delete_tree(folder: Path) -> bool:
    """Delete a folder; False where there was nothing. Blocking.

    Several workers of a host may be at it: True for the one that has deleted it.

    Raises:
        OSError: something of it cannot be deleted, or it took too long: what is gone is gone.
    """
    until = time.monotonic() + PATIENCE_SECONDS
    with suppress(FileNotFoundError):
        if not stat.S_ISDIR(folder.lstat().st_mode):
            folder.unlink()
            return True
        while True:
            with _opened(str(folder)) as top:
                for name in _names(top, until):
                    _delete(name, top, until)
            if _is_removed(str(folder)):
                return True
    return False


def _delete(name: str, top: int, until: float) -> None:
    """Delete what is in an open folder; of a folder, what is no folder: the others move up."""
    with suppress(FileNotFoundError):  # another has deleted it, or moved it
        if not _is_folder(name, top):
            os.unlink(name, dir_fd=top)
            return
        with _opened(name, top) as inner:
            for each in _names(inner, until):
                with suppress(FileNotFoundError):
                    _take_out(each, inner, top)
        _is_removed(name, top)


def _take_out(name: str, inner: int, top: int) -> None:
    if _is_folder(name, inner):
        _let_in(name, inner)  # a folder that is moved is written to
        os.rename(name, uuid4().hex, src_dir_fd=inner, dst_dir_fd=top)
    else:
        os.unlink(name, dir_fd=inner)


def _names(folder: int, until: float) -> Iterator[str]:
    """What is in an open folder, until nothing is: each is to be taken out of it."""
    while True:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in islice(entries, _NAMES_AT_ONCE)]
        if not names:
            return
        if time.monotonic() > until:
            raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
        yield from names


def _is_removed(name: str, within: int | None = None) -> bool:
    """Remove an empty folder; False where something has come into it meanwhile."""
    try:
        os.rmdir(name, dir_fd=within)
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise
        return False
    return True


def _is_folder(name: str, within: int) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=within, follow_symlinks=False).st_mode)


@contextmanager
def _opened(name: str, within: int | None = None) -> Iterator[int]:
    """An open folder, which its owner may have shut."""
    _let_in(name, within)
    folder = os.open(name, _FOLDER, dir_fd=within)
    try:
        yield folder
    finally:
        os.close(folder)


def _let_in(name: str, within: int | None) -> None:
    """Let us into a folder, and into nothing that it has become a link to."""
    if not sys.platform.startswith("linux"):
        os.chmod(name, 0o700, dir_fd=within, follow_symlinks=False)
        return
    folder = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=within)
    try:
        Path(f"/proc/self/fd/{folder}").chmod(0o700)
    finally:
        os.close(folder)
