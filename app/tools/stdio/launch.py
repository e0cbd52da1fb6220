"""Becomes a tool server, limited and tied to the process that wants it.

    python -I -S launch.py '{"parent": 1, "names": ["PATH"], "limits": {"CORE": 0}, "argv": ["x"]}'

Run as a script by :mod:`app.tools.stdio.child` and therefore free of imports beyond the standard
library. The environment's values come in the environment, where other users cannot read them; of
them the server gets those that are named. On Linux the kernel kills it when its starter dies.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from typing import NoReturn

PR_SET_PDEATHSIG = 1
NOT_STARTED = 126
"""The exit status where the command could not be executed."""


def main() -> NoReturn:
    """Limit this process, tie it to its starter, and run the command in its place."""
    asked = json.loads(sys.argv[1])
    for name, wanted in asked["limits"].items():
        _limit(name, wanted)
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != asked["parent"]:
            sys.exit(1)  # The starter died before the kernel knew of our wish.
    # Python ignores SIGPIPE, and what is ignored stays so.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    environment = {name: os.environ[name] for name in asked["names"]}
    try:
        os.execve(asked["argv"][0], asked["argv"], environment)  # noqa: S606 - our purpose
    except OSError:
        sys.exit(NOT_STARTED)


def _limit(name: str, wanted: int) -> None:
    kind = getattr(resource, f"RLIMIT_{name}", None)
    if kind is None:
        return
    _, most = resource.getrlimit(kind)
    limit = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
    resource.setrlimit(kind, (limit, limit))


if __name__ == "__main__":
    main()
