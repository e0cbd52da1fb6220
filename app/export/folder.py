"""The files that a person's tool servers have written, where this host has them.

The programs that own the folder may change it while it is read. No link is followed, at no level:
each folder is opened in the one above it, and what a name has become meanwhile is not read.
"""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from app.export.archive import Content
from app.export.names import Names
from app.runs.large_work import in_turn

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator
    from pathlib import Path

    from tenancy.principal import UserId

DEEPEST = 20
MOST_ENTRIES = 20_000
"""Files and folders, and whatever else there is, at all depths together."""
MOST_CHARACTERS = 4_000_000
"""In all their paths together, which are remembered until the end."""
TOO_MANY = "There are too many files and folders, or their names are too long: the rest is not in."
PIECE_BYTES = 256 * 1024
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Opening something that only waits for a writer must not wait."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file, open until the next one is asked for."""

    name: str
    """Where it goes: safe on every system."""
    path: str
    """What it is called."""
    file: BinaryIO
    size: int


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that is not taken along, and why."""

    path: str
    why: str


class FolderFiles:
    """Walks a folder; what is read of it is read in threads, one step at a time."""

    def __init__(self, user_id: UserId, folder: Path) -> None:
        self._user_id = user_id
        self._folder = folder

    async def found(self) -> AsyncGenerator[FoundFile | LeftOut, None]:
        """Everything in the folder, deeper ones included; nothing where there is none."""
        walk = _Walk().through(self._folder)
        try:
            while (each := await in_turn(self._user_id, next, walk, None)) is not None:
                yield each
        finally:
            walk.close()

    async def content(self, found: FoundFile) -> AsyncGenerator[Content, None]:
        """A file as large as it was when it was opened, or smaller if it has become so."""
        left = found.size
        while left and (data := await in_turn(self._user_id, _read, found.file, left)):
            left -= len(data)
            yield Content(data)


def _read(file: BinaryIO, left: int) -> bytes:
    try:
        return file.read(min(left, PIECE_BYTES))
    except OSError:  # gone with what it stood on: what was read is what there is
        return b""


class _Walk:
    """One way through a folder, which looks at so much and no more."""

    def __init__(self) -> None:
        self._seen = 0
        self._characters = 0
        self._is_over = False

    def through(self, folder: Path) -> Generator[FoundFile | LeftOut, None, None]:
        try:
            top = os.open(folder, _FOLDER)
        except OSError:
            return
        yield from self._inside(top, "", "", 1)

    def _inside(
        self, folder: int, name: str, path: str, depth: int
    ) -> Generator[FoundFile | LeftOut, None, None]:
        """What is in an open folder, which is closed at the end."""
        names = Names()
        with ExitStack() as stack:
            stack.callback(os.close, folder)
            for entry in stack.enter_context(os.scandir(folder)):
                said = _text(entry.name)
                if self._is_over:
                    return
                self._seen += 1
                self._characters += len(path) + len(said)
                if self._seen > MOST_ENTRIES or self._characters > MOST_CHARACTERS:
                    self._is_over = True
                    yield LeftOut(f"{path}{said}", TOO_MANY)
                    return
                safe = names.new(said)
                yield from self._one(folder, entry.name, f"{name}{safe}", f"{path}{said}", depth)

    def _one(
        self, folder: int, said: str, name: str, path: str, depth: int
    ) -> Generator[FoundFile | LeftOut, None, None]:
        try:
            kind = os.stat(said, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISDIR(kind) and depth < DEEPEST:
                inner = os.open(said, _FOLDER, dir_fd=folder)
                yield from self._inside(inner, f"{name}/", f"{path}/", depth + 1)
            elif stat.S_ISREG(kind):
                with os.fdopen(os.open(said, _FILE, dir_fd=folder), "rb") as file:
                    status = os.fstat(file.fileno())
                    if stat.S_ISREG(status.st_mode):
                        yield FoundFile(name, path, file, status.st_size)
            else:
                yield LeftOut(path, _why(kind))
        except OSError:
            yield LeftOut(path, "It could not be read.")


def _why(kind: int) -> str:
    if stat.S_ISLNK(kind):
        return "It is a link."
    return "It is too deep down." if stat.S_ISDIR(kind) else "It is no file."


def _text(said: str) -> str:
    """A name in characters, whatever its bytes are."""
    return os.fsencode(said).decode(errors="replace")
