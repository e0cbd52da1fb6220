"""Who the server runs as. PostgreSQL refuses to run as root."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from pathlib import Path

from app.dev.child import RunAs

_NAME = "stoa-postgres"
_FALLBACK = "nobody"
_OTHERS_MAY_ENTER = 0o001


def server_user(data: Path, *reached: Path) -> RunAs | None:
    """Return whom to give root up for, or ``None`` when we are not root.

    ``data`` keeps its owner where it has one. No folder's permissions are widened: where one on
    the way to ``data`` or ``reached`` is closed to others, the server gets the right to pass.
    """
    if os.geteuid() != 0:
        return None
    entry = _owner(data) or _system_user()
    closed = any(not _open_to_others(path) for path in (data, *reached))
    return RunAs(entry[0], entry[1], search=closed)


def _owner(data: Path) -> tuple[int, int] | None:
    if not data.exists():
        return None
    status = data.stat()
    return (status.st_uid, status.st_gid) if status.st_uid else None


def _system_user() -> tuple[int, int]:
    try:
        entry = pwd.getpwnam(_NAME)
    except KeyError:
        entry = _create_user()
    return entry.pw_uid, entry.pw_gid


def _create_user() -> pwd.struct_passwd:
    useradd = shutil.which("useradd")
    if useradd is not None:
        command = [useradd, "--system", "--no-create-home", "--user-group"]
        command += ["--shell", "/usr/sbin/nologin", _NAME]
        # Two starts at once may both try; what counts is whether the user is there.
        subprocess.run(command, check=False, capture_output=True)  # noqa: S603
    try:
        return pwd.getpwnam(_NAME)
    except KeyError:
        return pwd.getpwnam(_FALLBACK)


def _open_to_others(path: Path) -> bool:
    return all(
        parent.stat().st_mode & _OTHERS_MAY_ENTER
        for parent in path.resolve().parents
        if parent.exists()
    )
