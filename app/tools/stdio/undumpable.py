"""Closes this process's memory to other processes of the same user."""

from __future__ import annotations

import ctypes
import sys

PR_SET_DUMPABLE = 4


def make_undumpable() -> None:
    """Let no other process read this one's memory or environment, nor a core dump hold them.

    A tool server that is not sandboxed runs as the same user, and could read ``/proc`` otherwise.
    """
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
