"""The folder that keeps what a developer's Stoa knows, used by one ``stoa dev`` at a time."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.dev.errors import DevelopmentError

_MARK = "stoa-data"
_FORMAT = "1"
_ROOM_BYTES = 300_000_000
# What people made. The model's weights can stay: they are the same for everybody.
_DATA = (
    *("postgres", "postgres.new", "postgres.log", "credentials.json"),
    *("gateway-key.json", "vault-keys", "signing-keys", "tombstones", "mcp"),
)


@dataclass(frozen=True)
class DataFolder:
    """A folder that is ours and locked."""

    path: Path

    def reset(self) -> None:
        """Delete the data of earlier starts."""
        for name in _DATA:
            entry = self.path / name
            if entry.is_dir():
                shutil.rmtree(entry)
            else:
                entry.unlink(missing_ok=True)


@contextmanager
def open_folder(path: Path) -> Iterator[DataFolder]:
    """Make the folder where it is missing, and hold its lock.

    Raises:
        DevelopmentError: it cannot be used; the message says what to do.
    """
    path = path.absolute()
    try:
        _create(path)
        _check_mark(path)
        descriptor = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except PermissionError as error:
        raise DevelopmentError(
            f"There is no permission to write in {error.filename or path}. Give yourself that"
            " permission, or choose another folder with --data."
        ) from error
    except OSError as error:
        raise DevelopmentError(
            f"{path} cannot be used: {error.strerror}. Choose another folder with --data."
        ) from error
    try:
        _lock(descriptor, path)
        yield DataFolder(path)
    finally:
        os.close(descriptor)


def _create(path: Path) -> None:
    # The database's own user, which root gives up root for, has to pass; nobody needs to look.
    path.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, parents=True, exist_ok=True)
    mark = path / _MARK
    # An empty mark is what a start leaves that was killed, or found the disk full, in between.
    unmarked = not mark.stat().st_size if mark.exists() else not any(path.iterdir())
    if unmarked:
        if shutil.disk_usage(path).free < _ROOM_BYTES:
            raise DevelopmentError(
                f"{path} is on a disk with less than {_ROOM_BYTES // 1_000_000} MB left."
                " Make room, or choose another folder with --data."
            )
        mark.write_text(f"{_FORMAT}\n", encoding="ascii")
    if not os.access(path, os.W_OK | os.X_OK):
        raise PermissionError(0, "not writable", str(path))


def _check_mark(path: Path) -> None:
    try:
        found = (path / _MARK).read_text(encoding="ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        found = ""
    if not found:
        raise DevelopmentError(
            f"{path} has things in it, but is not a data folder of Stoa's."
            " Choose another folder with --data."
        )
    if found != _FORMAT:
        raise DevelopmentError(
            f"{path} was made by another version of Stoa. Use that version,"
            " or choose another folder with --data."
        )


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(descriptor, 20).decode("ascii", "replace").strip()
        raise DevelopmentError(
            f"`stoa dev` runs already on {path} (process {holder or 'unknown'})."
            " Stop it first, or choose another folder with --data and another --port."
        ) from error
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()}\n".encode("ascii"))
