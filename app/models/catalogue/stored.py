"""The catalogue's file: replaced whole or not at all, by whichever process has a newer one."""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_PREFIX = ".catalogue-"
_CLOCKS_DIFFER_SECONDS = 60.0
_STALE_SECONDS = 3600.0
"""A temporary file that is older was left by a process that was killed."""


@dataclass(frozen=True, slots=True)
class Stored(Generic[T]):
    """What the file holds."""

    value: T
    written_at: int
    """When it was written, in nanoseconds, by the clock of whoever did: it tells files apart."""

    @property
    def age_seconds(self) -> float:
        """How long ago that was; without end where a wrong clock says that it is still to come."""
        age = time.time() - self.written_at / 1e9
        return age if age > -_CLOCKS_DIFFER_SECONDS else float("inf")


class CatalogueFile:
    """A file that several processes may read and replace."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        """``most_bytes``: what is larger is nothing of ours, and is not read."""
        self._path = path
        self._most_bytes = most_bytes

    def read(self, parse: Callable[[bytes], T], known: int | None = None) -> Stored[T] | None:
        """What the file holds; None without a good one, or where it is the one that is ``known``.

        Raises:
            OSError: it is there and cannot be read.
        """
        try:
            # What is read and when it was written belong together, though it be replaced now.
            with self._path.open("rb") as file:
                written_at = os.fstat(file.fileno()).st_mtime_ns
                if written_at == known:
                    return None
                raw = file.read(self._most_bytes + 1)
            return Stored(parse(raw), written_at) if len(raw) <= self._most_bytes else None
        except (FileNotFoundError, ValueError):
            return None

    def replace(self, raw: bytes, parse: Callable[[bytes], T]) -> Stored[T]:
        """Put ``raw`` in the file's place, once what was written can be read; return what it says.

        Whatever fails, the file is as it was, and nothing else is left beside it.

        Raises:
            ValueError: it is nothing to keep.
            OSError: it cannot be written.
        """
        folder = self._path.parent
        folder.mkdir(parents=True, exist_ok=True)
        self._sweep(folder)
        descriptor, name = tempfile.mkstemp(prefix=_PREFIX, dir=folder)
        temporary = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(raw)
                file.flush()
                os.fsync(file.fileno())
                written_at = os.fstat(file.fileno()).st_mtime_ns
            value = parse(temporary.read_bytes())
            temporary.replace(self._path)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(folder)
        return Stored(value, written_at)

    @staticmethod
    def _sweep(folder: Path) -> None:
        for left in folder.glob(f"{_PREFIX}*"):
            with suppress(OSError):
                if time.time() - left.stat().st_mtime > _STALE_SECONDS:
                    left.unlink()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
