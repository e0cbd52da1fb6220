"""Outlives a worker that is killed, by as long as it takes to end what its tool servers started.

    python -I -S warden.py

Run as a script by :mod:`app.tools.stdio.groups` and therefore free of imports beyond the standard
library. It is told of process groups on its standard input, ``+123`` and ``-123``, and kills those
that are left when that ends, however the worker died. The servers themselves are killed by the
kernel; this is for their helpers.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys


def main() -> None:
    """Remember groups until there is nobody to tell of more, then kill them."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        group = int(line[1:])
        if line.startswith("+"):
            groups.add(group)
        else:
            groups.discard(group)
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
