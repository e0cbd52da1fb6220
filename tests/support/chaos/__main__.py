"""Puts forked processes where ``stoa`` starts some of its own, and runs the bench."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from app.cli.main import main
from app.dev import child
from tests.support import forked
from tests.support.development import STOA

_start_guarded = child.start_guarded


async def start(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    stdout: int | IO[bytes] = -1,
    pass_fds: Sequence[int] = (),
    **more: Any,
) -> forked.Running:
    """As :func:`app.dev.child.start_guarded`."""
    if tuple(command[: len(STOA)]) != STOA:
        return await _start_guarded(command, env=env, stdout=stdout, pass_fds=pass_fds, **more)
    assert env is not None
    assert not isinstance(stdout, int)
    return await forked.start(
        command[len(STOA) :],
        environment=env,
        folder=Path.cwd(),
        output=stdout,
        passed=pass_fds,
    )


if __name__ == "__main__":
    if sys.platform.startswith("linux"):
        atexit.register(forked.stop)
        child.start_guarded = start  # type: ignore[assignment]
    sys.argv[1:1] = ["bench", "chaos"]
    main()
