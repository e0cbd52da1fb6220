"""Processes that do nothing for a while: what they would do next can be looked at in peace."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import psutil

PATIENCE = 30.0
_LOOK_SECONDS = 0.005


@contextmanager
def frozen(pids: Iterable[int]) -> Iterator[None]:
    """Hold these processes, which the test has started: when the block begins they stand still."""
    processes = [psutil.Process(pid) for pid in pids]
    assert processes, "there is nothing to hold"
    for process in processes:
        process.suspend()
    try:
        given_up_at = time.monotonic() + PATIENCE
        while any(each.status() != psutil.STATUS_STOPPED for each in processes):
            assert time.monotonic() < given_up_at, "a process cannot be held"
            time.sleep(_LOOK_SECONDS)
        yield
    finally:
        for process in processes:
            process.resume()
