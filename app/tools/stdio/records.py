"""Which children run, written down where it outlives whoever started them.

A child ends with its worker: the kernel sees to it, and a warden. Where neither did, the next start
finds it here, by host, PID and start time. Nothing is said of whose it is or what it was given.
"""

from __future__ import annotations

import json
import os
import socket
import stat
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import orjson
import psutil
import structlog

from tenancy.reconcile.children import LeftChild
from tenancy.reconcile.facts import ProcessName

if TYPE_CHECKING:
    from pathlib import Path

log = structlog.get_logger(__name__)

FOLDER = ".processes"
"""Beside people's folders, whose names have no dot."""
_SUFFIX = ".json"
_MOST_BYTES = 4096


class ChildRecords:
    """The records of one process's children."""

    def __init__(self, root: Path) -> None:
        self._folder = root / FOLDER
        self._written: dict[int, Path] = {}

    def begun(self, pid: int) -> None:
        """Write down a child; where that fails, it is one safeguard less."""
        with suppress(OSError, psutil.Error):
            record = {
                "host": socket.gethostname(),
                "child": _named(pid),
                "owner": _named(psutil.Process().pid),
            }
            self._folder.mkdir(mode=0o700, exist_ok=True)
            path = self._folder / f"{uuid4()}{_SUFFIX}"
            self._written[pid] = path
            path.write_text(json.dumps(record))

    def over(self, pid: int) -> None:
        """It has been ended: forget it."""
        if path := self._written.pop(pid, None):
            with suppress(OSError):
                path.unlink(missing_ok=True)


def left_children(root: Path) -> list[LeftChild]:
    """All that is written down here, of whatever process; the log is told if it can't be read."""
    try:
        paths = sorted((root / FOLDER).iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        log.warning("the records of tool servers' processes cannot be read", errno=error.errno)
        return []
    found = []
    for path in paths:
        with suppress(ValueError):  # nothing of ours
            found.append(_read(path, UUID(path.name.removesuffix(_SUFFIX))))
    return found


def _read(path: Path, record_id: UUID) -> LeftChild:
    """A record; one that cannot be read, or was cut off as it was written, could be any process."""
    record: Any = None
    with suppress(OSError, ValueError):
        record = orjson.loads(_content(path))
    child, owner = _name(record, "child"), _name(record, "owner")
    return LeftChild(record_id, child, owner, partial(path.unlink, missing_ok=True))


def _content(path: Path) -> bytes:
    """What a file holds that is no other user's: by whose word would a process be ended?

    Raises:
        OSError: it cannot be read, or is a link.
        ValueError: it is no record.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
            raise ValueError
        return file.read(_MOST_BYTES)


def _named(pid: int) -> dict[str, Any]:
    started_at = datetime.fromtimestamp(psutil.Process(pid).create_time(), UTC)
    return {"pid": pid, "started_at": started_at.isoformat()}


def _name(record: Any, part: str) -> ProcessName:  # noqa: ANN401 - whatever a file holds
    try:
        host, named = record["host"], record[part]
        pid, started_at = named["pid"], datetime.fromisoformat(named["started_at"])
    except (TypeError, KeyError, ValueError):
        return ProcessName(None, None, None)
    if not (isinstance(host, str) and type(pid) is int and pid > 0 and started_at.tzinfo):
        return ProcessName(None, None, None)
    return ProcessName(host, pid, started_at)
