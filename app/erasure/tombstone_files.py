"""A folder with one file per erasure: whole or not there, and still there after a power cut."""

from __future__ import annotations

import json
import os
import re
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from app.erasure.errors import TombstoneNotWritten, TombstoneUnusable

if TYPE_CHECKING:
    from collections.abc import Iterator

_VERSION = 1
_NAME = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.json")
_PARTIAL = ".partial"
_PARTIAL_KEPT = timedelta(hours=1)
_OWNER_ONLY = 0o600
_LARGEST = 4096


@dataclass(frozen=True, slots=True)
class Tombstone:
    """That somebody was erased: who, only a signing key can tell, and of a user's id only."""

    erasure_id: UUID
    key_id: str
    user_hash: bytes
    expires_at: datetime


class TombstoneFolder:
    """Where tombstones are, one file each. Blocking; any number of processes may share one."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, tombstone: Tombstone) -> None:
        """Put one in, in place of the one that was there. Returns once the disk has it.

        Raises:
            TombstoneNotWritten: it could not be.
        """
        partial = self.path / f".{tombstone.erasure_id}.{secrets.token_hex(8)}{_PARTIAL}"
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                _write_through(partial, _content(tombstone))
                partial.replace(self.path / f"{tombstone.erasure_id}.json")
            finally:
                partial.unlink(missing_ok=True)
            _sync_folder(self.path)
        except OSError as error:
            raise TombstoneNotWritten(
                f"A file in STOA_TOMBSTONE_FOLDER cannot be written: {error.strerror}."
            ) from error

    def read(self) -> list[Tombstone]:
        """All of them, by their ids. A folder that is not there is empty.

        Raises:
            TombstoneUnusable: one cannot be read. To go on without it would bring somebody back.
        """
        found = (_read(path) for path in self._files())
        return [tombstone for tombstone in found if tombstone is not None]

    def drop_expired(self, now: datetime) -> int:
        """Delete those whose time is over, and what writers that died left; return how many."""
        dropped = 0
        for path in self._files():
            tombstone = _read(path)
            if tombstone is not None and tombstone.expires_at <= now:
                path.unlink(missing_ok=True)
                dropped += 1
        for path in self.path.glob(f".*{_PARTIAL}"):
            with suppress(FileNotFoundError):  # another process does the same
                if datetime.fromtimestamp(path.stat().st_mtime, UTC) < now - _PARTIAL_KEPT:
                    path.unlink()
        return dropped

    def _files(self) -> Iterator[Path]:
        try:
            paths = sorted(self.path.iterdir())
        except FileNotFoundError:
            return
        except OSError as error:
            raise TombstoneUnusable(
                f"STOA_TOMBSTONE_FOLDER cannot be read: {error.strerror}."
            ) from error
        yield from (path for path in paths if _NAME.fullmatch(path.name))


def _content(tombstone: Tombstone) -> bytes:
    return json.dumps(
        {
            "version": _VERSION,
            "erasure_id": str(tombstone.erasure_id),
            "key_id": tombstone.key_id,
            "user_hash": tombstone.user_hash.hex(),
            "expires_at": tombstone.expires_at.astimezone(UTC).isoformat(),
        }
    ).encode()


def _write_through(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    """Have the disk know the name too: a file without one is lost with the power."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(path: Path) -> Tombstone | None:
    """The tombstone in a file; None if the file is gone by now."""
    try:
        with os.fdopen(_opened(path), "rb") as file:
            is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            tombstone = _parsed(json.loads(file.read(_LARGEST))) if is_file else None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TombstoneUnusable(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        tombstone = None
    if tombstone is None or f"{tombstone.erasure_id}.json" != path.name:
        raise TombstoneUnusable(
            f"{path} is no tombstone that this version can read. Somebody who was erased may come"
            " back without it: put back what it was, or take it away if you know better."
        )
    return tombstone


def _opened(path: Path) -> int:
    """Open a file; what only waits for a writer is none, and must not be waited for."""
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)


def _parsed(found: Any) -> Tombstone | None:  # noqa: ANN401 - JSON of any kind
    expires_at = datetime.fromisoformat(found["expires_at"])
    if found["version"] != _VERSION or expires_at.tzinfo is None:
        return None
    return Tombstone(
        erasure_id=UUID(found["erasure_id"]),
        key_id=str(found["key_id"]),
        user_hash=bytes.fromhex(found["user_hash"]),
        expires_at=expires_at,
    )
